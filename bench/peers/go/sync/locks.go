// SPDX-License-Identifier: MIT OR 0BSD

package main

import (
	"bench/internal/bench"
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// The objects of the rows are global, as in bench/rows/sync.c, so that they are not moved into
// registers.
var (
	mutex   sync.Mutex
	rwlock  sync.RWMutex
	sem     *semaphore.Weighted
	permits chan struct{} // a semaphore as a channel: a value put in is a permit held
	once    sync.Once
	guarded uint64 // by the lock that the row is about
)

var background = context.Background()

func must(taken bool) {
	if !taken {
		bench.Die("no other goroutine was there, yet it could not be taken")
	}
}

// ---- C1

// alone has no other goroutine there: guarded counts the operations.
func alone(step func()) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		sem, permits = semaphore.NewWeighted(10), make(chan struct{}, 10)
		guarded = 0
		step()
		must(sem.TryAcquire(10) && len(permits) == 0)
		return guarded
	}
}

func tryMutex() {
	for range million {
		must(mutex.TryLock())
		guarded++
		mutex.Unlock()
	}
}

func lockMutex() {
	for range million {
		mutex.Lock()
		guarded++
		mutex.Unlock()
	}
}

func tryRead() {
	guarded = 1
	sum := uint64(0)
	for range million {
		must(rwlock.TryRLock())
		sum += guarded
		rwlock.RUnlock()
	}
	guarded = sum
}

func read() {
	guarded = 1
	sum := uint64(0)
	for range million {
		rwlock.RLock()
		sum += guarded
		rwlock.RUnlock()
	}
	guarded = sum
}

func tryWrite() {
	for range million {
		must(rwlock.TryLock())
		guarded++
		rwlock.Unlock()
	}
}

func write() {
	for range million {
		rwlock.Lock()
		guarded++
		rwlock.Unlock()
	}
}

func trySem() {
	for range million {
		must(sem.TryAcquire(1))
		guarded++
		sem.Release(1)
	}
}

func acquireSem() {
	for range million {
		acquire()
		guarded++
		sem.Release(1)
	}
}

func acquire() {
	if err := sem.Acquire(background, 1); err != nil {
		bench.Die("semaphore: %v", err)
	}
}

func tryPermits() {
	for range million {
		select {
		case permits <- struct{}{}:
			guarded++
		default:
			must(false)
		}
		<-permits
	}
}

func acquirePermits() {
	for range million {
		permits <- struct{}{}
		guarded++
		<-permits
	}
}

// ---- C2, C3

func onceGet(*bench.Rep) uint64 {
	once = sync.Once{}
	guarded = 0
	sum := uint64(0)
	for range million {
		once.Do(func() { guarded++ })
		sum += guarded
	}
	return sum
}

func onceSet(*bench.Rep) (n uint64) {
	for i := range uint64(million) {
		once = sync.Once{}
		once.Do(func() { guarded = i })
		if guarded == i {
			n++
		}
	}
	return n
}

var bell chan struct{}

func notify(*bench.Rep) (n uint64) {
	for range million {
		bell = make(chan struct{}, 1)
		bell <- struct{}{}
		<-bell
		n++
	}
	return n
}

// barrier is made of a Mutex and a Cond, as Go has none.
type barrier struct {
	mu          sync.Mutex
	cond        sync.Cond
	parties, in int
	round       uint64
}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: parties}
	b.cond.L = &b.mu
	return b
}

// wait is true for the one that came last.
func (b *barrier) wait() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.in++; b.in == b.parties {
		b.in = 0
		b.round++
		b.cond.Broadcast()
		return true
	}
	for round := b.round; b.round == round; {
		b.cond.Wait()
	}
	return false
}

var meeting *barrier

func barrierOfOne(*bench.Rep) (n uint64) {
	for range million {
		meeting = newBarrier(1)
		if meeting.wait() {
			n++
		}
	}
	return n
}

const meetings, parties = 20_000, 8

func meet(*bench.Rep) uint64 {
	meeting = newBarrier(parties)
	return contend(1, parties, func(int) (n uint64) {
		for range meetings {
			if meeting.wait() {
				n++
			}
		}
		return n
	})
}

// ---- C9

const c9Ops, c9Times, yieldTimes = 10_000, 100, 20
const lockers, readers, writers, acquirers = 4, 4, 2, 8

var latch = bench.NewLatch()
var done atomic.Uint64

// contend has n goroutines at a time and gives the sum of what each has counted.
func contend(times, n int, run func(id int) uint64) uint64 {
	done.Store(0)
	for range times {
		latch.Set(n)
		for id := range n {
			go func() {
				done.Add(run(id))
				latch.Hit()
			}()
		}
		latch.Wait()
	}
	return done.Load()
}

// contention begins with nothing done, and wants to find what was guarded right and unlocked.
func contention(times, n int, writes uint64, run func(id int) uint64) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		guarded = 0
		sem, permits = semaphore.NewWeighted(2), make(chan struct{}, 2)
		ops := contend(times, n, run)
		if guarded != writes || !sem.TryAcquire(2) || len(permits) > 0 {
			return 0
		}
		must(mutex.TryLock() && rwlock.TryLock())
		mutex.Unlock()
		rwlock.Unlock()
		return ops
	}
}

func locker(int) (n uint64) {
	for range c9Ops / lockers {
		mutex.Lock()
		guarded++
		mutex.Unlock()
		n++
	}
	return n
}

func holder(int) (n uint64) {
	for range c9Ops / lockers {
		mutex.Lock()
		seen := guarded
		runtime.Gosched()
		guarded = seen + 1 // as no other goroutine has been here
		mutex.Unlock()
		n++
	}
	return n
}

// turn is a semaphore of one permit, which goes strictly in turn; a Mutex does not.
var turn = semaphore.NewWeighted(1)

func inTurn(int) (n uint64) {
	for range c9Ops / lockers {
		if turn.Acquire(background, 1) != nil {
			return 0
		}
		seen := guarded
		runtime.Gosched()
		guarded = seen + 1 // as no other goroutine has been here
		turn.Release(1)
		n++
	}
	return n
}

func readerOrWriter(id int) (n uint64) {
	for range c9Ops / (readers + writers) {
		if id < readers {
			rwlock.RLock()
			rwlock.RUnlock()
		} else {
			rwlock.Lock()
			guarded++
			rwlock.Unlock()
		}
		n++
	}
	return n
}

func acquirer(int) (n uint64) {
	for range c9Ops / acquirers {
		acquire()
		sem.Release(1)
		n++
	}
	return n
}

func permitAcquirer(int) (n uint64) {
	for range c9Ops / acquirers {
		permits <- struct{}{}
		<-permits
		n++
	}
	return n
}

// ---- C10: notifications

const c10Ops = 200_000

// notifyAll: each says that it is there once it will see the next notification.
func notifyAll(n int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		var mu sync.Mutex
		cond, round := sync.NewCond(&mu), 0
		wait := func() {
			mu.Lock()
			seen := round
			latch.Hit()
			for round == seen {
				cond.Wait()
			}
			mu.Unlock()
		}
		return fanOut(n, wait, func() {
			mu.Lock()
			round++
			mu.Unlock()
			cond.Broadcast()
		})
	}
}

// notifyAllClose: the notification is that the channel of the round is closed.
func notifyAllClose(n int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		var now atomic.Pointer[chan struct{}]
		turn := func() *chan struct{} {
			next := make(chan struct{})
			return now.Swap(&next)
		}
		turn()
		wait := func() {
			c := *now.Load()
			latch.Hit()
			<-c
		}
		return fanOut(n, wait, func() { close(*turn()) })
	}
}

// fanOut has n goroutines that wait and are told, once they all hit the latch in their waits.
func fanOut(n int, wait func(), tell func()) uint64 {
	rounds := c10Ops / n
	done.Store(0)
	latch.Set(n)
	for range n {
		go func() {
			woken := uint64(0)
			for range rounds {
				wait()
				woken++
			}
			done.Add(woken)
			latch.Hit()
		}()
	}
	latch.Wait()
	for range rounds {
		latch.Set(n)
		tell()
		latch.Wait()
	}
	return done.Load()
}

// notifyOne: a notification that no goroutine waits for yet is kept, by the room for one.
func notifyOne(n int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		bell = make(chan struct{}, 1)
		begun := bench.NewLatch()
		begun.Set(n)
		done.Store(0)
		latch.Set(n)
		for range n {
			go func() {
				begun.Hit()
				woken := uint64(0)
				for range c10Ops / n {
					<-bell
					woken++
					bell <- struct{}{}
				}
				done.Add(woken)
				latch.Hit()
			}()
		}
		begun.Wait()
		bell <- struct{}{}
		latch.Wait()
		return done.Load()
	}
}
