// SPDX-License-Identifier: MIT OR 0BSD

// Timer has the timer rows by goroutines and package time.
//
//	T1a  a timeout of 1 s over a receive that is ready at once: NewTimer, select, Stop
//	T1b  a sleep of 1 s that is cancelled at once: NewTimer, Stop
//	T1c  a timeout of 1 s over one Gosched: NewTimer, Gosched, Stop; nothing in Go can poll it
//	     T1 are 100 goroutines with 10,000 operations each. Since Go 1.23 such a timer is in no heap
//	     as long as no goroutine is blocked on its channel, thus in none of these three;
//	     :reset with one timer per goroutine, Reset and Stop; :afterfunc, which is in a heap
//	T2   1,000,000 goroutines sleep 10 s; wall: what it takes above the 10 s
//	T3a  1,000,000 calls of AfterFunc over 0..999 ms from the start: each function runs in a new
//	     goroutine, as Go has no other timer that fires without a waiting goroutine
//	T3b  1,000,000 live ones, of which Reset moves a random one, 1,000,000 times
//	T4   1,000 goroutines sleep 100 us (a), 1 ms (b), 15 ms (c), 50 times, c 20 times; wall: 99 %
//	     come that late or earlier
package main

import (
	"bench/internal/bench"
	"runtime"
	"sync/atomic"
	"time"
)

const million = 1_000_000

var latch = bench.NewLatch()
var good atomic.Uint64 // operations that ended as they must

// spawn starts n goroutines and gives the sum of the good operations that each has counted.
func spawn(n int, run func(i int) uint64) uint64 {
	good.Store(0)
	latch.Set(n)
	for i := range n {
		go func() {
			good.Add(run(i))
			latch.Hit()
		}()
	}
	latch.Wait()
	return good.Load()
}

// ---- T1

const t1Tasks, t1Ops = 100, 10_000

var ready = make(chan struct{}) // closed: a receive does not wait

// A goroutine can be preempted with its timer armed until all others have ended: once a second has
// passed since the start, which it does on a machine with other work, a timer may have struck.
var t1Start int64

func mayStrike() bool { return bench.Now()-t1Start >= int64(time.Second) }

func isReady(t *time.Timer) bool {
	select {
	case <-ready:
		return isCancelled(t)
	case <-t.C:
		return mayStrike()
	}
}

func isCancelled(t *time.Timer) bool { return t.Stop() || mayStrike() }

func hasYielded(t *time.Timer) bool {
	runtime.Gosched()
	return isCancelled(t)
}

func t1(arm func() func() *time.Timer, do func(*time.Timer) bool) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		t1Start = bench.Now()
		return spawn(t1Tasks, func(int) (n uint64) {
			next := arm()
			for range t1Ops {
				if do(next()) {
					n++
				}
			}
			return n
		})
	}
}

func byNew() func() *time.Timer {
	return func() *time.Timer { return time.NewTimer(time.Second) }
}

func byReset() func() *time.Timer {
	t := time.NewTimer(time.Second)
	t.Stop()
	return func() *time.Timer {
		t.Reset(time.Second)
		return t
	}
}

func struck() { bench.Die("a timer that was to be stopped has struck") }

func byAfterFunc() func() *time.Timer {
	strike := func() {
		if !mayStrike() {
			struck()
		}
	}
	return func() *time.Timer { return time.AfterFunc(time.Second, strike) }
}

// ---- T2

func t2(r *bench.Rep) uint64 {
	const length = 10 * time.Second
	start := bench.Now()
	n := spawn(million, func(int) uint64 {
		from := bench.Now()
		time.Sleep(length)
		if bench.Now()-from < int64(length) {
			return 0
		}
		return 1
	})
	r.Figure(float64(bench.Now()-start-int64(length)) / million)
	return n
}

// ---- T3

type random uint64

func (r *random) next() uint64 { // xorshift
	x := *r
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = x
	return uint64(x)
}

func fired() { latch.Hit() }

func t3a(*bench.Rep) uint64 {
	rnd, start := random(1), bench.Now()
	latch.Set(million)
	for range million {
		due := start + int64(rnd.next()%1000)*int64(time.Millisecond)
		time.AfterFunc(time.Duration(due-bench.Now()), fired)
	}
	return latch.Wait()
}

// anHourAway is some time from one to two hours.
func (r *random) anHourAway() time.Duration {
	return time.Hour + time.Duration(r.next()%uint64(time.Hour))
}

func t3b(r *bench.Rep) (n uint64) {
	rnd := random(1)
	r.Pause()
	live := make([]*time.Timer, million)
	for i := range live {
		live[i] = time.AfterFunc(rnd.anHourAway(), struck)
	}
	r.Resume()
	for range million {
		if live[rnd.next()%million].Reset(rnd.anHourAway()) { // it was live
			n++
		}
	}
	r.Pause()
	for _, t := range live {
		if !t.Stop() {
			n-- // lost
		}
	}
	r.Resume()
	return n
}

// ---- T4

const t4Tasks = 1000

func t4(length time.Duration, times int) func(*bench.Rep) uint64 {
	return func(r *bench.Rep) uint64 {
		late := make([]int64, t4Tasks*times)
		done := spawn(t4Tasks, func(i int) (n uint64) {
			mine := late[i*times : (i+1)*times]
			for k := range mine {
				from := bench.Now()
				time.Sleep(length)
				mine[k] = bench.Now() - from - int64(length)
				if mine[k] >= 0 {
					n++
				}
			}
			return n
		})
		r.Figure(bench.Quantile(late, 0.99))
		return done
	}
}

// ---- main

func rows(int) (all []bench.Row) {
	for _, t := range []struct {
		id, what string
		arm      func() func() *time.Timer
		do       func(*time.Timer) bool
	}{
		{"T1a", "NewTimer, select with what is ready, Stop", byNew, isReady},
		{"T1a:reset", "Reset, select with what is ready, Stop", byReset, isReady},
		{"T1b", "NewTimer, Stop", byNew, isCancelled},
		{"T1b:reset", "Reset, Stop", byReset, isCancelled},
		{"T1b:afterfunc", "AfterFunc, Stop", byAfterFunc, isCancelled},
		{"T1c", "NewTimer, Gosched, Stop", byNew, hasYielded},
		{"T1c:reset", "Reset, Gosched, Stop", byReset, hasYielded},
		{"T1c:afterfunc", "AfterFunc, Gosched, Stop", byAfterFunc, hasYielded},
	} {
		row := bench.Row{ID: t.id, What: t.what, Ops: t1Tasks * t1Ops, Run: t1(t.arm, t.do)}
		all = append(all, row)
	}
	const us, ms = time.Microsecond, time.Millisecond
	return append(all,
		bench.Row{ID: "T2", What: "sleep 10 s: above it", Ops: million, Run: t2, Cold: true},
		bench.Row{ID: "T3a", What: "AfterFunc within 1 s, all fire", Ops: million, Run: t3a},
		bench.Row{ID: "T3b", What: "Reset one of a million", Ops: million, Run: t3b},
		bench.Row{ID: "T4a", What: "sleep 100 us: p99", Ops: t4Tasks * 50, Run: t4(100*us, 50)},
		bench.Row{ID: "T4b", What: "sleep 1 ms: p99", Ops: t4Tasks * 50, Run: t4(ms, 50)},
		bench.Row{ID: "T4c", What: "sleep 15 ms: p99", Ops: t4Tasks * 20, Run: t4(15*ms, 20)},
	)
}

func main() {
	close(ready)
	bench.Main(rows, nil)
}
