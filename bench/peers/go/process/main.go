// SPDX-License-Identifier: MIT OR 0BSD

// Process has the process rows by os/exec.
//
//	P1  Run of true(1), 100 times
//	P2  by 8 goroutines, 25 times each
package main

import (
	"bench/internal/bench"
	"os/exec"
	"sync"
	"sync/atomic"
)

const oneByOne, atOnce, each = 100, 8, 25

func start(times int) (n uint64) {
	for range times {
		if exec.Command("/bin/true").Run() == nil {
			n++
		}
	}
	return n
}

func one(*bench.Rep) uint64 { return start(oneByOne) }

func several(*bench.Rep) uint64 {
	var n atomic.Uint64
	var all sync.WaitGroup
	for range atOnce {
		all.Add(1)
		go func() {
			n.Add(start(each))
			all.Done()
		}()
	}
	all.Wait()
	return n.Load()
}

func rows(int) []bench.Row {
	return []bench.Row{
		{ID: "P1", What: "true(1), one at a time", Ops: oneByOne, Run: one},
		{ID: "P2", What: "true(1), 8 at a time", Ops: atOnce * each, Run: several},
	}
}

func main() { bench.Main(rows, nil) }
