// SPDX-License-Identifier: MIT OR 0BSD

// Outside has the rows of work that comes from threads which are no workers.
//
// Go has no such threads: all Go code runs in goroutines, on one of the GOMAXPROCS processors. The
// work is therefore given by a goroutine like any other, and GOMAXPROCS counts it too. With :locked
// it is one with a thread of its own (LockOSThread), and GOMAXPROCS is greater than --workers by
// one for each such thread, so that it takes no processor from the tasks. The goroutines that give
// work are started outside the timed part.
//
//	S3     nothing else runs; one spawns 10,000, and the root waits for all by the latch, since
//	       goroutines have no handles; x20
//	S4a    the same once, beside 2*workers goroutines that work 10 us and call Gosched, in a loop
//	S4b    the same with 1,000, beside 4 that work 10 us and start their successors; x5
//	S5pK   K goroutines spawn 12,800 empty ones in total; from the first one until all have run; x20
//	S12abc one locked to its thread wakes one that waits for a channel and stores the time at which
//	       it runs; then 3, 30, 300 us from the answer to the next wake, in which the thread works;
//	       wall: the median latency. :spare with GOMAXPROCS greater by one; :goroutine without a
//	       thread of its own
//	S12de  100 goroutines sleep to their ticks at 1 kHz, 1000 each, beside 2*workers that work 10 us
//	       and call Gosched; wall: d half of the ticks, e 99 % come that late or earlier
package main

import (
	"bench/internal/bench"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

const stall = 10_000 // ns

var latch = bench.NewLatch()

func empty() { latch.Hit() }

// ---- goroutines that keep the workers busy

type hogs struct {
	stop  atomic.Bool
	ended *bench.Latch
}

func startHogs(n int, run func(h *hogs)) *hogs {
	h := &hogs{ended: bench.NewLatch()}
	h.ended.Set(n)
	for range n {
		go run(h)
	}
	return h
}

func (h *hogs) end() {
	h.stop.Store(true)
	h.ended.Wait()
}

func yielding(h *hogs) {
	for !h.stop.Load() {
		bench.Stall(stall)
		runtime.Gosched()
	}
	h.ended.Hit()
}

func respawning(h *hogs) {
	bench.Stall(stall)
	if h.stop.Load() {
		h.ended.Hit()
		return
	}
	go respawning(h)
}

// ---- S3, S4, S5

type outside struct {
	threads, tasks, times int // tasks: of all threads
	locked                bool
	hogs                  int
	hog                   func(h *hogs)
}

func (o *outside) spawn() {
	for range o.tasks / o.threads {
		go empty()
	}
}

func (o *outside) run(r *bench.Rep) (hits uint64) {
	r.Pause()
	c := bench.NewCrew(o.threads, o.locked, o.spawn)
	h := startHogs(o.hogs, o.hog)
	r.Resume()
	for range o.times {
		latch.Set(o.tasks)
		c.Tell()
		hits += latch.Wait()
		c.Wait()
	}
	r.Pause()
	if o.hogs > 0 {
		h.end()
	}
	c.End()
	r.Resume()
	return hits
}

func (o outside) rows(id, what string) []bench.Row {
	row := bench.Row{ID: id, What: what, Ops: uint64(o.tasks * o.times), Run: o.run}
	o.locked = true
	locked := row
	locked.ID, locked.Spare, locked.Run = id+":locked", o.threads, o.run
	return []bench.Row{row, locked}
}

// ---- S12: wakes

type wakes struct {
	n      int
	gap    int64
	locked bool
}

// sleeper stores how late it is; all times are of one clock.
func sleeper(wake <-chan int64, answer chan<- struct{}, late []int64) {
	for i := range late {
		sent := <-wake
		late[i] = bench.Now() - sent
		answer <- struct{}{}
	}
}

func (w *wakes) run(r *bench.Rep) uint64 {
	wake, answer := make(chan int64), make(chan struct{}, 1)
	late := make([]int64, w.n)
	n := uint64(0)
	r.Pause()
	c := bench.NewCrew(1, w.locked, func() {
		for range late {
			bench.Stall(w.gap)
			wake <- bench.Now()
			<-answer
			n++
		}
	})
	go sleeper(wake, answer, late)
	r.Resume()
	c.Tell()
	c.Wait()
	r.Pause()
	c.End()
	r.Resume()
	r.Figure(bench.Quantile(late, 0.5))
	return n
}

func (w wakes) rows(id, what string) []bench.Row {
	free := w
	w.locked = true
	row := bench.Row{ID: id, What: what, Ops: uint64(w.n), Run: w.run}
	spare, goroutine := row, row
	spare.ID, spare.Spare = id+":spare", 1
	goroutine.ID, goroutine.Run = id+":goroutine", free.run
	return []bench.Row{row, spare, goroutine}
}

// ---- S12: tickers

const tickers, ticks, tick = 100, 1000, int64(time.Millisecond)

var inTime atomic.Uint64 // ticks, not before their times

func ticker(late []int64) {
	n, due := uint64(0), bench.Now()
	for i := range late {
		due += tick
		time.Sleep(time.Duration(due - bench.Now()))
		late[i] = bench.Now() - due
		if late[i] >= 0 {
			n++
		}
	}
	inTime.Add(n)
	latch.Hit()
}

func ticking(hogs int, q float64) func(*bench.Rep) uint64 {
	return func(r *bench.Rep) uint64 {
		late := make([]int64, tickers*ticks)
		inTime.Store(0)
		h := startHogs(hogs, yielding)
		latch.Set(tickers)
		for i := range tickers {
			go ticker(late[i*ticks : (i+1)*ticks])
		}
		latch.Wait()
		h.end()
		r.Figure(bench.Quantile(late, q))
		return inTime.Load()
	}
}

// ---- main

func rows(workers int) (all []bench.Row) {
	s3 := outside{threads: 1, tasks: 10_000, times: 20}
	s4a := outside{threads: 1, tasks: 10_000, times: 1, hogs: 2 * workers, hog: yielding}
	s4b := outside{threads: 1, tasks: 1_000, times: 5, hogs: 4, hog: respawning}
	all = append(all, s3.rows("S3", "spawn 10,000, wait for all")...)
	all = append(all, s4a.rows("S4a", "the same beside hogs that yield")...)
	all = append(all, s4b.rows("S4b", "spawn 1,000 beside hogs that respawn")...)
	for _, k := range []int{1, 2, 4, 8} {
		s5 := outside{threads: k, tasks: 12_800, times: 20}
		all = append(all, s5.rows(fmt.Sprintf("S5p%d", k), "spawn 12,800, detached")...)
	}
	all = append(all, wakes{n: 2000, gap: 3_000}.rows("S12a", "wake after 3 us: median")...)
	all = append(all, wakes{n: 2000, gap: 30_000}.rows("S12b", "wake after 30 us: median")...)
	all = append(all, wakes{n: 500, gap: 300_000}.rows("S12c", "wake after 300 us: median")...)
	const ops = tickers * ticks
	return append(all,
		bench.Row{ID: "S12d", What: "tick beside hogs: p50", Ops: ops, Run: ticking(2*workers, 0.5)},
		bench.Row{ID: "S12e", What: "tick beside hogs: p99", Ops: ops, Run: ticking(2*workers, 0.99)},
	)
}

func main() { bench.Main(rows, nil) }
