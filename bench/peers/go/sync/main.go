// SPDX-License-Identifier: MIT OR 0BSD

// Sync has those rows of bench/rows/sync.c and bench/rows/chan.c that Go can do: by package sync,
// channels and golang.org/x/sync/semaphore, with the same workloads and sums.
//
//	C1   t by TryLock and the like, w by Lock; d a Weighted semaphore; :chan a channel as one
//	C2   sync.Once; a is Do with nothing left to do
//	C3   a: a notification is a message in a channel of 1; b, c: a barrier of a Mutex and a Cond
//	C4   channels; t by a select with default
//	C5   a: a oneshot is a channel of 1; b: a goroutine that answers by one; :waitgroup by that
//	C6b, C10g  a watch of a Mutex and a Cond
//	C7   close ends it, once the senders are done; d: a channel of a million
//	C8   a, b; nothing takes many messages at a time, and no channel grows
//	C9   e: by a Weighted semaphore of 1, which goes strictly in turn; :chan a channel as a semaphore
//	C10  a, b: Broadcast of a Cond; :close by a channel that is closed; c, d: a channel of 1
//	C9w  as there; only when it is asked for, alone
//
// Not here: C6a, C10e and C10f (Go has no broadcast that keeps messages), C8c, C8d, C8e.
package main

import "bench/internal/bench"

const million = 1_000_000

func rows(int) []bench.Row {
	const c9, c9yield = c9Times * c9Ops, yieldTimes * c9Ops
	const c9rw = c9Ops / (readers + writers)
	const c8 = c8Times * c8All
	mutexes := contention(c9Times, lockers, c9, locker)
	rwlocks := contention(c9Times, readers+writers, c9Times*writers*c9rw, readerOrWriter)
	semaphores := contention(c9Times, acquirers, 0, acquirer)
	channels := contention(c9Times, acquirers, 0, permitAcquirer)
	yielding := contention(yieldTimes, lockers, c9yield, holder)
	turns := contention(yieldTimes, lockers, c9yield, inTurn)
	return []bench.Row{
		{ID: "C1at", What: "Mutex: TryLock, Unlock", Ops: million, Run: alone(tryMutex)},
		{ID: "C1aw", What: "Mutex: Lock, Unlock", Ops: million, Run: alone(lockMutex)},
		{ID: "C1bt", What: "RWMutex: TryRLock, RUnlock", Ops: million, Run: alone(tryRead)},
		{ID: "C1bw", What: "RWMutex: RLock, RUnlock", Ops: million, Run: alone(read)},
		{ID: "C1ct", What: "RWMutex: TryLock, Unlock", Ops: million, Run: alone(tryWrite)},
		{ID: "C1cw", What: "RWMutex: Lock, Unlock", Ops: million, Run: alone(write)},
		{ID: "C1dt", What: "Weighted: TryAcquire, Release", Ops: million, Run: alone(trySem)},
		{ID: "C1dt:chan", What: "channel of 10: try", Ops: million, Run: alone(tryPermits)},
		{ID: "C1dw", What: "Weighted: Acquire, Release", Ops: million, Run: alone(acquireSem)},
		{ID: "C1dw:chan", What: "channel of 10", Ops: million, Run: alone(acquirePermits)},
		{ID: "C2a", What: "Once: Do when done, value", Ops: million, Run: onceGet},
		{ID: "C2b", What: "Once: new, Do", Ops: million, Run: onceSet},
		{ID: "C3a", What: "channel of 1: new, send, receive", Ops: million, Run: notify},
		{ID: "C3b", What: "barrier of 1: new, wait", Ops: million, Run: barrierOfOne},
		{ID: "C3c", What: "barrier of 8: a round", Ops: meetings, Run: meet},
		{ID: "C4at", What: "channel: fill, select", Ops: fills * full, Run: filling(tryFill)},
		{ID: "C4aw", What: "channel: fill", Ops: fills * full, Run: filling(fill)},
		{ID: "C4bt", What: "channel: drain, select", Ops: fills * full, Run: draining(tryDrain)},
		{ID: "C4bw", What: "channel: drain", Ops: fills * full, Run: draining(drain)},
		{ID: "C4ct", What: "channel of 1: two selects", Ops: million, Run: tryOne},
		{ID: "C4cw", What: "channel of 1: send, receive", Ops: million, Run: one},
		{ID: "C5at", What: "channel of 1: new, send, select", Ops: million, Run: tryOneshot},
		{ID: "C5aw", What: "channel of 1: new, send, receive", Ops: million, Run: oneshot},
		{ID: "C5b", What: "spawn, answer by a channel of 1", Ops: million, Run: join},
		{ID: "C5b:waitgroup", What: "spawn, WaitGroup", Ops: million, Run: joinWaitGroup},
		{ID: "C6b", What: "watch: set, get", Ops: million, Run: watchSetGet},
		{ID: "C7a", What: "4 to 4, 10k through 1000", Ops: million, Run: exchange(10_000, 1000, 100)},
		{ID: "C7b", What: "4 to 4, 1M through 1000", Ops: million, Run: exchange(million, 1000, 1)},
		{ID: "C7c", What: "4 to 4, 1M through 1", Ops: million, Run: exchange(million, 1, 1)},
		{ID: "C7c:unbuffered", What: "4 to 4, 1M", Ops: million, Run: exchange(million, 0, 1)},
		{ID: "C7d", What: "4 to 4, 1M, never full", Ops: million, Run: exchange(million, million, 1)},
		{ID: "C8a", What: "5 to 1 through 1M", Ops: c8, Run: collect(million)},
		{ID: "C8b", What: "5 to 1 through 100", Ops: c8, Run: collect(100)},
		{ID: "C9a", What: "Mutex, 4 goroutines", Ops: c9, Run: mutexes},
		{ID: "C9b", What: "RWMutex, 4 readers, 2 writers", Ops: 6 * c9Times * c9rw, Run: rwlocks},
		{ID: "C9c", What: "Weighted of 2, 8 goroutines", Ops: c9, Run: semaphores},
		{ID: "C9c:chan", What: "channel of 2, 8 goroutines", Ops: c9, Run: channels},
		{ID: "C9d", What: "Mutex over Gosched, 4 goroutines", Ops: c9yield, Run: yielding},
		{ID: "C9e", What: "the same, in turn, Weighted of 1", Ops: c9yield, Run: turns},
		{ID: "C10a", What: "Broadcast, 10: one woken", Ops: c10Ops, Run: notifyAll(10)},
		{ID: "C10a:close", What: "close, 10: one woken", Ops: c10Ops, Run: notifyAllClose(10)},
		{ID: "C10b", What: "Broadcast, 500: one woken", Ops: c10Ops, Run: notifyAll(500)},
		{ID: "C10b:close", What: "close, 500: one woken", Ops: c10Ops, Run: notifyAllClose(500)},
		{ID: "C10c", What: "channel of 1 around 10", Ops: c10Ops, Run: notifyOne(10)},
		{ID: "C10d", What: "channel of 1 around 500", Ops: c10Ops, Run: notifyOne(500)},
		{ID: "C10g", What: "watch, 1000: one woken", Ops: c10Ops, Run: watchBy(1000)},
	}
}

func main() { bench.Main(rows, map[string]func(int){"C9w": holdContests}) }
