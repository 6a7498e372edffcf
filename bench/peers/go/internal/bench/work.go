// SPDX-License-Identifier: MIT OR 0BSD

package bench

import (
	"runtime"
	"sync/atomic"
)

// Latch counts its hits, and wakes the goroutine that waits for a number of them.
//
// Go has no storage of a thread in which to count without a line that all share: a task that does
// nothing else is counted by its hit, which is one atomic addition, like that of a WaitGroup.
type Latch struct {
	hits, want atomic.Int64 // of all times
	n          int64        // of this time
	open       chan struct{}
}

// NewLatch is a latch that has not been set.
func NewLatch() *Latch { return &Latch{open: make(chan struct{}, 1)} }

// Set begins the next time; no goroutine may hit or wait then. One hit too many in an earlier time
// opened it too early, and so on, until here there is one more than wanted.
func (l *Latch) Set(n int) {
	if hits := l.hits.Load(); hits != l.want.Load() {
		Die("a latch was hit %d times, not %d", hits, l.want.Load())
	}
	l.n = int64(n)
	l.want.Add(l.n)
}

// Hit is for each task at its end.
func (l *Latch) Hit() {
	if l.hits.Add(1) == l.want.Load() {
		l.open <- struct{}{}
	}
}

// Wait gives the number of hits of this time.
func (l *Latch) Wait() uint64 {
	<-l.open
	return uint64(l.hits.Load() - l.want.Load() + l.n)
}

// Crew is of goroutines, started beforehand, which work as often as they are told to.
type Crew struct {
	n          int
	goes, done chan struct{}
}

// NewCrew starts n; locked: each with a thread of its own.
func NewCrew(n int, locked bool, work func()) *Crew {
	c := &Crew{n, make(chan struct{}), make(chan struct{})}
	for range n {
		go c.run(locked, work)
	}
	c.Wait()
	return c
}

func (c *Crew) run(locked bool, work func()) {
	if locked {
		runtime.LockOSThread() // a thread that is not unlocked ends with its goroutine
	}
	c.done <- struct{}{}
	for range c.goes {
		work()
		c.done <- struct{}{}
	}
	c.done <- struct{}{}
}

// Tell has all work once.
func (c *Crew) Tell() {
	for range c.n {
		c.goes <- struct{}{}
	}
}

// Wait is until all have.
func (c *Crew) Wait() {
	for range c.n {
		<-c.done
	}
}

// End is for when no goroutine works.
func (c *Crew) End() {
	close(c.goes)
	c.Wait()
}

// SumBelow is that of all numbers below n.
func SumBelow(n uint64) uint64 { return n * (n - 1) / 2 }

// Messages is n if the sum of their numbers is that of all below n.
func Messages(n, sum uint64) uint64 {
	if sum != SumBelow(n) {
		return 0
	}
	return n
}
