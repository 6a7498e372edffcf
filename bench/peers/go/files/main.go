// SPDX-License-Identifier: MIT OR 0BSD

// Files has the file rows: see bench/rows/files.h for the file. A goroutine blocks its thread while
// it reads one.
//
//	F1  ReadAt of 4 KiB at random offsets, 20,000 times
//	F2  of 64 KiB, 4,000 times
package main

import (
	"bench/internal/bench"
	"encoding/binary"
	"os"
)

const (
	page, pages, part = 4096, 4096, 65536
	f1Ops, f2Ops      = 20_000, 4_000
)

var file *os.File

func open() {
	f, err := os.CreateTemp("/var/tmp", "bench-files")
	if err != nil {
		bench.Die("%v", err)
	}
	os.Remove(f.Name())
	buffer := make([]byte, page)
	for i := range uint64(pages) {
		binary.NativeEndian.PutUint64(buffer, i)
		if _, err := f.Write(buffer); err != nil {
			bench.Die("%v", err)
		}
	}
	file = f
}

var random uint64

func read(length, times int) func(*bench.Rep) uint64 {
	buffer := make([]byte, length)
	each := uint64(length / page)
	return func(r *bench.Rep) (n uint64) {
		if file == nil {
			open()
		}
		for range times {
			random = random*6364136223846793005 + 1442695040888963407
			at := (random >> 33) % (pages / each) * each
			got, err := file.ReadAt(buffer, int64(at)*page)
			if err == nil && got == length && binary.NativeEndian.Uint64(buffer) == at {
				n++
			}
		}
		return n
	}
}

func rows(int) []bench.Row {
	return []bench.Row{
		{ID: "F1", What: "ReadAt of 4 KiB", Ops: f1Ops, Run: read(page, f1Ops)},
		{ID: "F2", What: "ReadAt of 64 KiB", Ops: f2Ops, Run: read(part, f2Ops)},
	}
}

func main() { bench.Main(rows, nil) }
