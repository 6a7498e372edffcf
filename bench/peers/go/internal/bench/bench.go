// SPDX-License-Identifier: MIT OR 0BSD

// Package bench is what the programs share: clocks, repetitions, one line of figures per row,
// options. Columns and JSON are those of bench/rows/bench.h:
//
//	row      its name                     workers  GOMAXPROCS
//	min, median  wall time of a repetition / operations in it, in ns: the fastest, and the median
//	cpu      user and system time of all threads / operations, in ns: the median
//	wakes    voluntary context switches of all threads / operations: the median
//	ops      operations in one repetition
//
// Command line: [ROW...] [--workers N] [--reps N] [--gc on|off], or --list, which names the rows.
// With --gc off nothing is collected in a repetition, but all between two, unless it takes 4 GiB.
package bench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	repsMax     = 99
	workersMax  = 64
	memoryLimit = 4 << 30
)

// Row is a workload of a fixed number of operations.
type Row struct {
	ID, What string
	Ops      uint64 // in one repetition
	// Run does one repetition and gives the operations that it has counted.
	Run func(r *Rep) uint64
	// Spare is by how much GOMAXPROCS is above the workers.
	Spare int
	// Cold is for a row that is done once, without a warm-up, unless --reps says otherwise.
	Cold bool
}

// ---- clocks

var base = time.Now()

// Now is a clock in ns.
func Now() int64 { return int64(time.Since(base)) }

// Stall works for ns nanoseconds.
func Stall(ns int64) {
	for end := Now() + ns; Now() < end; {
	}
}

type usage struct{ wall, cpu, wakes int64 }

func usageNow() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		Die("getrusage: %v", err)
	}
	return usage{Now(), u.Utime.Nano() + u.Stime.Nano(), u.Nvcsw}
}

func (u usage) minus(v usage) usage {
	return usage{u.wall - v.wall, u.cpu - v.cpu, u.wakes - v.wakes}
}

// ---- repetitions

// Rep is the repetition that is under way.
type Rep struct {
	start, pause usage
	untimed      usage
	figure       *float64
}

// Pause begins what does not count.
func (r *Rep) Pause() { r.pause = usageNow() }

// Resume ends what does not count.
func (r *Rep) Resume() {
	d := usageNow().minus(r.pause)
	r.untimed = usage{r.untimed.wall + d.wall, r.untimed.cpu + d.cpu, r.untimed.wakes + d.wakes}
}

// Figure takes the place of the wall time per operation.
func (r *Rep) Figure(ns float64) { r.figure = &ns }

type figures struct{ wall, cpu, wakes []float64 }

func (f *figures) add(r *Rep, ops uint64) {
	d := usageNow().minus(r.start).minus(r.untimed)
	wall := float64(d.wall) / float64(ops)
	if r.figure != nil {
		wall = *r.figure
	}
	f.wall = append(f.wall, wall)
	f.cpu = append(f.cpu, float64(d.cpu)/float64(ops))
	f.wakes = append(f.wakes, float64(d.wakes)/float64(ops))
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Quantile is the least figure that q of them do not exceed; it sorts them.
func Quantile(v []int64, q float64) float64 {
	slices.Sort(v)
	return float64(v[max(0, min(len(v)-1, int(q*float64(len(v)))))])
}

func (row *Row) measure(o *options) {
	var f figures
	reps, first := o.reps, -1
	if row.Cold {
		first = 0
	}
	if row.Cold && !o.repsGiven {
		reps = 1
	}
	runtime.GOMAXPROCS(o.workers + row.Spare)
	for i := first; i < reps; i++ {
		if !o.gc {
			runtime.GC()
		}
		r := Rep{start: usageNow()}
		done := row.Run(&r)
		if i >= 0 {
			f.add(&r, row.Ops)
		}
		if done != row.Ops {
			Die("%s: operations were lost or done twice: %d of %d", row.ID, done, row.Ops)
		}
		time.Sleep(time.Millisecond) // a task that wrongly still runs is seen by the next Set
	}
	row.print(o.workers, &f)
}

const columns = "%-16s %7v %10v %10v %10v %10v %10v  %s\n"

func (row *Row) print(workers int, f *figures) {
	n := len(f.wall)
	wall, cpu, wakes := median(f.wall), median(f.cpu), median(f.wakes)
	two := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	fmt.Printf(columns, row.ID, workers, two(f.wall[0]), two(wall), two(cpu),
		strconv.FormatFloat(wakes, 'f', 5, 64), row.Ops, row.What)
	if os.Getenv("BENCH_JSON") == "" {
		return
	}
	fmt.Printf(`{"row":%q,"workers":%d,"wall_min_ns":%.3f,"wall_median_ns":%.3f,`+
		`"cpu_median_ns":%.3f,"wakes_per_op":%.6f,"ops":%d,"repetitions":%d}`+"\n",
		row.ID, workers, f.wall[0], wall, cpu, wakes, row.Ops, n)
}

// ---- command line

type options struct {
	workers, reps       int
	list, gc, repsGiven bool
	wanted              []string
}

// Die ends the program.
func Die(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(2)
}

func number(name, text string, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		Die("%s: a number from 1 to %d", name, most)
	}
	return n
}

func parse(args []string) *options {
	o := &options{workers: 1, reps: 9, gc: true}
	if len(args) == 1 && args[0] == "--list" {
		o.list = true
		return o
	}
	for len(args) > 0 {
		name, value := args[0], ""
		args = args[1:]
		if name == "" || name[0] != '-' {
			o.wanted = append(o.wanted, name)
			continue
		}
		if len(args) > 0 {
			value, args = args[0], args[1:]
		}
		o.set(name, value)
	}
	return o
}

func (o *options) set(name, value string) {
	switch name {
	case "--workers":
		o.workers = number(name, value, workersMax)
	case "--reps":
		o.reps, o.repsGiven = number(name, value, repsMax), true
	case "--gc":
		if value != "on" && value != "off" {
			Die("--gc: on or off")
		}
		o.gc = value == "on"
	default:
		Die("%s: unknown option %s; there are: --workers --reps --gc", os.Args[0], name)
	}
}

// Main does the rows that the command line wants; what they are may depend on the workers.
// A row that stands in `alone` is done when it is asked for, by itself.
func Main(rows func(workers int) []Row, alone map[string]func(workers int)) {
	o := parse(os.Args[1:])
	all := rows(o.workers)
	if o.list {
		for _, row := range all {
			fmt.Println(row.ID)
		}
		return
	}
	if !o.gc {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(memoryLimit)
	}
	runtime.GOMAXPROCS(o.workers)
	if len(o.wanted) == 1 && alone[o.wanted[0]] != nil {
		alone[o.wanted[0]](o.workers)
		return
	}
	for _, id := range o.wanted {
		if !slices.ContainsFunc(all, func(row Row) bool { return row.ID == id }) {
			Die("%s: no such row", id)
		}
	}
	fmt.Printf(columns, "row", "workers", "min ns", "median", "cpu", "wakes", "ops", "operation")
	for i := range all {
		if len(o.wanted) == 0 || slices.Contains(o.wanted, all[i].ID) {
			all[i].measure(o)
		}
	}
}
