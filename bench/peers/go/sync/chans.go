// SPDX-License-Identifier: MIT OR 0BSD

package main

import (
	"bench/internal/bench"
	"sync"
	"sync/atomic"
)

const full, fills = 100_000, 10

var room chan uint64 // that the row is about

// ---- C4

func tryFill() {
	for i := range uint64(full) {
		select {
		case room <- i:
		default:
			must(false)
		}
	}
}

func fill() {
	for i := range uint64(full) {
		room <- i
	}
}

func tryDrain() (sum uint64) {
	for range full {
		select {
		case value := <-room:
			sum += value
		default:
			must(false)
		}
	}
	return sum
}

func drain() (sum uint64) {
	for range full {
		sum += <-room
	}
	return sum
}

func filling(fill func()) func(*bench.Rep) uint64 {
	return func(r *bench.Rep) (n uint64) {
		for range fills {
			r.Pause()
			room = make(chan uint64, full)
			r.Resume()
			fill()
			r.Pause()
			n += bench.Messages(full, drain())
			r.Resume()
		}
		return n
	}
}

func draining(drain func() uint64) func(*bench.Rep) uint64 {
	return func(r *bench.Rep) (n uint64) {
		for range fills {
			r.Pause()
			room = make(chan uint64, full)
			fill()
			r.Resume()
			n += bench.Messages(full, drain())
		}
		return n
	}
}

func tryOne(*bench.Rep) uint64 {
	room = make(chan uint64, 1)
	sum := uint64(0)
	for i := range uint64(million) {
		select {
		case room <- i:
		default:
			must(false)
		}
		select {
		case value := <-room:
			sum += value
		default:
			must(false)
		}
	}
	return bench.Messages(million, sum)
}

func one(*bench.Rep) uint64 {
	room = make(chan uint64, 1)
	sum := uint64(0)
	for i := range uint64(million) {
		room <- i
		sum += <-room
	}
	return bench.Messages(million, sum)
}

// ---- C5

func tryOneshot(*bench.Rep) uint64 {
	sum := uint64(0)
	for i := range uint64(million) {
		room = make(chan uint64, 1)
		room <- i
		select {
		case value := <-room:
			sum += value
		default:
			must(false)
		}
	}
	return bench.Messages(million, sum)
}

func oneshot(*bench.Rep) uint64 {
	sum := uint64(0)
	for i := range uint64(million) {
		room = make(chan uint64, 1)
		room <- i
		sum += <-room
	}
	return bench.Messages(million, sum)
}

func join(*bench.Rep) uint64 {
	sum := uint64(0)
	for i := range uint64(million) {
		back := make(chan uint64, 1)
		go func() { back <- i }()
		sum += <-back
	}
	return bench.Messages(million, sum)
}

func joinWaitGroup(*bench.Rep) uint64 {
	sum := uint64(0)
	for i := range uint64(million) {
		var back struct {
			sync.WaitGroup
			value uint64
		}
		back.Add(1)
		go func() {
			back.value = i
			back.Done()
		}()
		back.Wait()
		sum += back.value
	}
	return bench.Messages(million, sum)
}

// ---- C6, C10: a watch

// watch is made of a Mutex and a Cond, as Go has none.
type watch struct {
	mu             sync.Mutex
	cond           sync.Cond
	value, version uint64
}

func newWatch() *watch {
	w := &watch{}
	w.cond.L = &w.mu
	return w
}

func (w *watch) set(value uint64) {
	w.mu.Lock()
	w.value = value
	w.version++
	w.mu.Unlock()
	w.cond.Broadcast()
}

func (w *watch) get() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.value
}

// next waits until it has been set since the version that was seen.
func (w *watch) next(seen *uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.version == *seen {
		w.cond.Wait()
	}
	*seen = w.version
	return w.value
}

func watchSetGet(*bench.Rep) uint64 {
	w, sum := newWatch(), uint64(0)
	for i := range uint64(million) {
		w.set(i)
		sum += w.get()
	}
	return bench.Messages(million, sum)
}

func watchBy(n int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) uint64 {
		w, rounds := newWatch(), uint64(c10Ops/n)
		begun, ended := bench.NewLatch(), bench.NewLatch()
		begun.Set(n)
		ended.Set(n)
		done.Store(0)
		for range n {
			go func() {
				sum, seen := uint64(0), uint64(0)
				begun.Hit()
				for range rounds {
					sum += w.next(&seen)
					latch.Hit()
				}
				done.Add(bench.Messages(rounds, sum))
				ended.Hit()
			}()
		}
		begun.Wait()
		for i := range rounds {
			latch.Set(n)
			w.set(i)
			latch.Wait()
		}
		ended.Wait()
		return done.Load()
	}
}

// ---- C7

const senders, receivers = 4, 4

// exchange: the last sender closes the channel, after which the receivers find it empty.
func exchange(n, capacity, times int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) (total uint64) {
		for range times {
			c := make(chan uint64, capacity)
			var received, sum atomic.Uint64
			var sending sync.WaitGroup
			sending.Add(senders)
			latch.Set(senders + receivers)
			for id := range senders {
				go send(c, id*(n/senders), n/senders, &sending)
			}
			for range receivers {
				go receive(c, &received, &sum)
			}
			sending.Wait()
			close(c)
			latch.Wait()
			if sum.Load() != bench.SumBelow(uint64(n)) {
				return 0
			}
			total += received.Load()
		}
		return total
	}
}

func send(c chan<- uint64, first, n int, sending *sync.WaitGroup) {
	for i := range n {
		c <- uint64(first + i)
	}
	sending.Done()
	latch.Hit()
}

func receive(c <-chan uint64, received, sum *atomic.Uint64) {
	mine, count := uint64(0), uint64(0)
	for value := range c {
		mine += value
		count++
	}
	received.Add(count)
	sum.Add(mine)
	latch.Hit()
}

// ---- C8

const c8Senders, c8Each, c8Times = 5, 1000, 200
const c8All = c8Senders * c8Each

func collect(capacity int) func(*bench.Rep) uint64 {
	return func(*bench.Rep) (total uint64) {
		c := make(chan uint64, capacity) // each time it is empty at the end
		for range c8Times {
			sum := uint64(0)
			latch.Set(c8Senders)
			for id := range c8Senders {
				go func() {
					for i := range c8Each {
						c <- uint64(id*c8Each + i)
					}
					latch.Hit()
				}()
			}
			for range c8All {
				sum += <-c
			}
			total += bench.Messages(c8All, sum)
			latch.Wait()
		}
		return total
	}
}
