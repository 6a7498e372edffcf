// SPDX-License-Identifier: MIT OR 0BSD

// Wake has the rows of a thread that wakes a goroutine. It is one itself, with a thread of its own
// (LockOSThread), since Go has no other threads, and GOMAXPROCS counts it too; with :spare
// GOMAXPROCS is greater than --workers by one, so that it takes no processor from the other one.
//
//	N7a  1,000,000 wakes without waiting: one is added to a number, then a struct{} sent to a
//	     channel of 1 if there is room; they may coalesce, and the woken one wants to see them all
//	N7b  20,000 round trips: sends one and waits for the answer, by two unbuffered channels
package main

import (
	"bench/internal/bench"
	"sync/atomic"
)

const n7aOps, n7bOps = 1_000_000, 20_000

// byThread has a thread, started beforehand, send to what receives.
func byThread(r *bench.Rep, send, receive func()) {
	r.Pause()
	c := bench.NewCrew(1, true, send)
	r.Resume()
	c.Tell()
	receive()
	c.Wait()
	r.Pause()
	c.End()
	r.Resume()
}

func n7a(r *bench.Rep) uint64 {
	var sent atomic.Uint64
	bell, seen := make(chan struct{}, 1), uint64(0)
	byThread(r, func() {
		for range n7aOps {
			sent.Add(1)
			select {
			case bell <- struct{}{}:
			default: // it will be woken, and sees what was added
			}
		}
	}, func() {
		for seen < n7aOps {
			<-bell
			seen = sent.Load()
		}
	})
	return seen
}

func n7b(r *bench.Rep) (n uint64) {
	wake, answer := make(chan uint64), make(chan uint64)
	byThread(r, func() {
		for i := range uint64(n7bOps) {
			wake <- i
			if <-answer == i+1 {
				n++
			}
		}
		close(wake)
	}, func() {
		for value := range wake {
			answer <- value + 1
		}
	})
	return n
}

func rows(int) []bench.Row {
	a := bench.Row{ID: "N7a", What: "wakes, without waiting", Ops: n7aOps, Run: n7a}
	b := bench.Row{ID: "N7b", What: "a wake and its answer", Ops: n7bOps, Run: n7b}
	aSpare, bSpare := a, b
	aSpare.ID, aSpare.Spare = "N7a:spare", 1
	bSpare.ID, bSpare.Spare = "N7b:spare", 1
	return []bench.Row{a, aSpare, b, bSpare}
}

func main() { bench.Main(rows, nil) }
