// SPDX-License-Identifier: MIT OR 0BSD

// Sched has the scheduler rows by goroutines: spawning, chaining, handing over, yielding.
//
//	S1   detached empty goroutines, 200 at a time; the root calls Gosched until they have run
//	S2   the root spawns 10,000 at a time; the last one to run wakes it
//	S6   each spawns the next, 1000 deep; the last one wakes the root
//	S7   1000 at a time each spawn another one, hand it a number with its closure, and get it
//	     back by a channel of 1: a goroutine has no handle to join; :waitgroup by a WaitGroup
//	S7o  1000 at a time each make two channels of 1, a send through the one and an answer
//	     through the other; :unbuffered with such channels
//	S8   200 call Gosched 1000 times each
//	S9   numbers there and back by two channels of 1: a one pair, b as many as workers, c 200;
//	     :unbuffered with such channels
//	S10  skynet as it is well known in Go, by unbuffered channels; :buffered by channels of 10,
//	     :waitgroup by a WaitGroup in each inner node
package main

import (
	"bench/internal/bench"
	"runtime"
	"sync"
	"sync/atomic"
)

const million = 1_000_000

// ---- batches of n goroutines, of which each hits the latch at its end

var latch = bench.NewLatch()

func batches(times, n int, spawn func(i int)) (hits uint64) {
	for range times {
		latch.Set(n)
		for i := range n {
			spawn(i)
		}
		hits += latch.Wait()
	}
	return hits
}

// ---- S1, S2

const s1Tasks, s2Tasks = 200, 10_000

var ran atomic.Uint64

func bare() { ran.Add(1) }

func s1(*bench.Rep) uint64 {
	ran.Store(0)
	for target := uint64(s1Tasks); target <= million; target += s1Tasks {
		for range s1Tasks {
			go bare()
		}
		for runtime.Gosched(); ran.Load() < target; {
			runtime.Gosched()
		}
	}
	return ran.Load()
}

func empty() { latch.Hit() }

func s2(*bench.Rep) (hits uint64) {
	for range million / s2Tasks {
		latch.Set(s2Tasks)
		for range s2Tasks {
			go empty()
		}
		hits += latch.Wait()
	}
	return hits
}

// ---- S6

const s6Depth = 1000

var links uint64 // each sees what the one before it has written

func link(left int) {
	links++
	if left == 0 {
		latch.Hit()
		return
	}
	go link(left - 1)
}

func s6(*bench.Rep) uint64 {
	links = 0
	batches(million/s6Depth, 1, func(int) { go link(s6Depth - 1) })
	return links
}

// ---- S7

const s7Tasks, s7Times = 1000, 100

func check(got, want int) {
	if got != want {
		bench.Die("got %d, expected %d", got, want)
	}
}

func ping(value int) {
	back := make(chan int, 1)
	go func() { back <- value + 1 }()
	check(<-back, value+1)
	latch.Hit()
}

func pingWaitGroup(value int) {
	var back struct {
		sync.WaitGroup
		value int
	}
	back.Add(1)
	go func() {
		back.value = value + 1
		back.Done()
	}()
	back.Wait()
	check(back.value, value+1)
	latch.Hit()
}

func pingOneshot(value, capacity int) {
	there, back := make(chan int, capacity), make(chan int, capacity)
	go func() { back <- <-there + 1 }()
	there <- value
	check(<-back, value+1)
	latch.Hit()
}

func s7(*bench.Rep) uint64 {
	return batches(s7Times, s7Tasks, func(i int) { go ping(i) })
}

func s7WaitGroup(*bench.Rep) uint64 {
	return batches(s7Times, s7Tasks, func(i int) { go pingWaitGroup(i) })
}

func s7o(capacity int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		return batches(s7Times, s7Tasks, func(i int) { go pingOneshot(i, capacity) })
	}
}

// ---- S8

const s8Tasks, s8Yields, s8Times = 200, 1000, 5

var yields atomic.Uint64

func yielder() {
	n := uint64(0)
	for range s8Yields {
		runtime.Gosched()
		n++
	}
	yields.Add(n)
	latch.Hit()
}

func s8(*bench.Rep) uint64 {
	yields.Store(0)
	batches(s8Times, s8Tasks, func(int) { go yielder() })
	return yields.Load()
}

// ---- S9

var trips atomic.Uint64

func pair(n, capacity int) {
	there, back := make(chan int, capacity), make(chan int, capacity)
	go func() {
		for value := range there {
			back <- value + 1
		}
		latch.Hit()
	}()
	good := uint64(0)
	for i := range n {
		there <- i
		check(<-back, i+1)
		good++
	}
	close(there)
	trips.Add(good)
	latch.Hit()
}

func s9(id, what string, pairs, n int) []bench.Row {
	run := func(capacity int) func(*bench.Rep) uint64 {
		return func(*bench.Rep) uint64 {
			trips.Store(0)
			latch.Set(2 * pairs)
			for range pairs {
				go pair(n, capacity)
			}
			latch.Wait()
			return trips.Load()
		}
	}
	ops := uint64(pairs * n)
	return []bench.Row{
		{ID: id, What: what + ", channels of 1", Ops: ops, Run: run(1)},
		{ID: id + ":unbuffered", What: what + ", unbuffered", Ops: ops, Run: run(0)},
	}
}

// ---- S10

const degree = 10
const leaves = million

func skynet(up chan<- int, first, size, capacity int) {
	if size == 1 {
		up <- first
		return
	}
	down, sum := make(chan int, capacity), 0
	for i := range degree {
		go skynet(down, first+i*(size/degree), size/degree, capacity)
	}
	for range degree {
		sum += <-down
	}
	up <- sum
}

type node struct {
	sync.WaitGroup
	sums [degree]int
}

func skynetWaitGroup(up *node, at, first, size int) {
	defer up.Done()
	if size == 1 {
		up.sums[at] = first
		return
	}
	var n node
	n.Add(degree)
	for i := range degree {
		go skynetWaitGroup(&n, i, first+i*(size/degree), size/degree)
	}
	n.Wait()
	for _, sum := range n.sums {
		up.sums[at] += sum
	}
}

func s10(capacity int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		up := make(chan int, capacity)
		go skynet(up, 0, leaves, capacity)
		return bench.Messages(leaves, uint64(<-up))
	}
}

func s10WaitGroup(*bench.Rep) uint64 {
	var top node
	top.Add(1)
	go skynetWaitGroup(&top, 0, 0, leaves)
	top.Wait()
	return bench.Messages(leaves, uint64(top.sums[0]))
}

// ---- main

func rows(workers int) []bench.Row {
	const s9Ops, s7Ops = 200_000, s7Tasks * s7Times
	all := []bench.Row{
		{ID: "S1", What: "spawn, 200 at a time", Ops: million, Run: s1},
		{ID: "S2", What: "spawn, 10,000 at a time", Ops: million, Run: s2},
		{ID: "S6", What: "chained spawn, depth 1000", Ops: million, Run: s6},
		{ID: "S7", What: "two spawns, value back by a channel of 1", Ops: s7Ops, Run: s7},
		{ID: "S7:waitgroup", What: "two spawns, WaitGroup", Ops: s7Ops, Run: s7WaitGroup},
		{ID: "S7o", What: "two spawns, two channels of 1", Ops: s7Ops, Run: s7o(1)},
		{ID: "S7o:unbuffered", What: "two spawns, two channels", Ops: s7Ops, Run: s7o(0)},
		{ID: "S8", What: "Gosched, 200 goroutines", Ops: s8Tasks * s8Yields * s8Times, Run: s8},
	}
	all = append(all, s9("S9a", "round trip, 1 pair", 1, s9Ops)...)
	all = append(all, s9("S9b", "round trip, a pair per worker", workers, s9Ops/workers)...)
	all = append(all, s9("S9c", "round trip, 200 pairs", 200, s9Ops/200)...)
	return append(all,
		bench.Row{ID: "S10", What: "skynet, channels", Ops: leaves, Run: s10(0)},
		bench.Row{ID: "S10:buffered", What: "skynet, channels of 10", Ops: leaves, Run: s10(degree)},
		bench.Row{ID: "S10:waitgroup", What: "skynet, WaitGroup", Ops: leaves, Run: s10WaitGroup},
	)
}

func main() { bench.Main(rows, nil) }
