// SPDX-License-Identifier: MIT OR 0BSD

package main

import (
	"bench/internal/bench"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"
)

// ---- C9w: the longest waits, and the share of each goroutine in the operations of 0.2 s

const waitsLength = 200_000_000 // ns

type contest struct {
	what       string
	n          int
	take, give func(id int)
}

var contests = []contest{
	{"mutex", lockers, func(int) { mutex.Lock() }, func(int) { mutex.Unlock() }},
	{"rwlock", readers + writers, takeRW, giveRW},
	{"semaphore", acquirers, func(int) { acquire() }, func(int) { sem.Release(1) }},
	{"channel", acquirers, func(int) { permits <- struct{}{} }, func(int) { <-permits }},
}

func takeRW(id int) {
	if id < readers {
		rwlock.RLock()
	} else {
		rwlock.Lock()
	}
}

func giveRW(id int) {
	if id < readers {
		rwlock.RUnlock()
	} else {
		rwlock.Unlock()
	}
}

type share struct {
	n       uint64
	longest int64
}

func (k *contest) run(id int, end int64, yields bool) (s share) {
	for since := bench.Now(); since <= end; since = bench.Now() {
		k.take(id)
		s.longest = max(s.longest, bench.Now()-since)
		if yields {
			runtime.Gosched()
		}
		k.give(id)
		s.n++
	}
	return s
}

func (k *contest) hold(workers int, yields bool) {
	sem, permits = semaphore.NewWeighted(2), make(chan struct{}, 2)
	shares := make([]share, k.n)
	start := bench.Now()
	n := contend(1, k.n, func(id int) uint64 {
		shares[id] = k.run(id, start+waitsLength, yields)
		return shares[id].n
	})
	seconds := float64(bench.Now()-start) / 1e9
	if n == 0 {
		bench.Die("C9w: nothing was done")
	}
	what, fair := k.what, float64(n)/float64(k.n)
	if yields {
		what += "+yield"
	}
	byN := func(a, b share) int { return int(a.n) - int(b.n) }
	byWait := func(a, b share) int { return int(a.longest - b.longest) }
	fmt.Printf("%-12s %7d %-16s %12.0f %10.1f %8.2f %8.2f\n", "C9w", workers, what,
		float64(n)/seconds, float64(slices.MaxFunc(shares, byWait).longest)/1000,
		float64(slices.MinFunc(shares, byN).n)/fair, float64(slices.MaxFunc(shares, byN).n)/fair)
}

func holdContests(workers int) {
	fmt.Printf("%-12s %7s %-16s %12s %10s %8s %8s\n", "row", "workers", "contest", "ops/s",
		"longest us", "least", "most")
	for _, yields := range []bool{false, true} {
		for i := range contests {
			contests[i].hold(workers, yields)
		}
	}
}
