// SPDX-License-Identifier: MIT OR 0BSD
//! How a row of this peer is measured: see ../../rows/bench.h for the columns. One thread does it
//! all. Each repetition tells how many operations were right; any other number ends the program.
const std = @import("std");

const reps_max = 99;
const Samples = [reps_max]f64;

pub const Row = struct {
    id: []const u8,
    what: []const u8,
    ops: u64, // in one repetition, as run must tell
    run: *const fn () u64,
};

// ---- clocks

/// Use of resources by the process so far.
const Usage = struct {
    wall: i64, // ns, as the next one
    cpu: i64, // of user and system
    wakes: i64,

    fn now() Usage {
        const u = std.posix.getrusage(std.posix.rusage.SELF);
        const t = std.posix.clock_gettime(.MONOTONIC) catch die("no clock", .{});
        return .{
            .wall = t.sec * std.time.ns_per_s + t.nsec,
            .cpu = timeval_ns(u.utime) + timeval_ns(u.stime),
            .wakes = u.nvcsw,
        };
    }

    fn since(self: Usage, start: Usage) Usage {
        return .{
            .wall = self.wall - start.wall,
            .cpu = self.cpu - start.cpu,
            .wakes = self.wakes - start.wakes,
        };
    }
};

fn timeval_ns(t: std.posix.timeval) i64 {
    return t.sec * std.time.ns_per_s + t.usec * std.time.ns_per_us;
}

// ---- rows

var started: Usage = undefined; // the repetition
var paused: Usage = undefined;

/// Time and work between the two do not count: the start is set forward by them.
pub fn pause() void {
    paused = Usage.now();
}

pub fn unpause() void {
    const gap = Usage.now().since(paused);
    started.wall += gap.wall;
    started.cpu += gap.cpu;
    started.wakes += gap.wakes;
}

const Figures = struct {
    n: usize = 0, // repetitions so far
    wall: Samples = undefined, // per operation, as the next two
    cpu: Samples = undefined,
    wakes: Samples = undefined,

    fn add(self: *Figures, used: Usage, ops: u64) void {
        self.wall[self.n] = per(used.wall, ops);
        self.cpu[self.n] = per(used.cpu, ops);
        self.wakes[self.n] = per(used.wakes, ops);
        self.n += 1;
    }
};

fn per(used: i64, ops: u64) f64 {
    return @as(f64, @floatFromInt(used)) / @as(f64, @floatFromInt(ops));
}

/// Sorts the figures; the smallest is then the first.
fn median(samples: []f64) f64 {
    std.mem.sort(f64, samples, {}, std.sort.asc(f64));
    const middle = samples.len / 2;
    if (samples.len % 2 == 1) return samples[middle];
    return (samples[middle - 1] + samples[middle]) / 2;
}

fn repeat(row: *const Row) Usage {
    started = Usage.now();
    const ops = row.run();
    const used = Usage.now().since(started);
    if (ops != row.ops) die("{s}: operations were lost or done twice", .{row.id});
    return used;
}

fn measure(row: *const Row, reps: usize) void {
    var figures = Figures{};
    _ = repeat(row); // to warm up
    for (0..reps) |_| figures.add(repeat(row), row.ops);
    print_row(row, &figures);
}

fn print_row(row: *const Row, f: *Figures) void {
    const wall = median(f.wall[0..f.n]);
    const cpu = median(f.cpu[0..f.n]);
    const wakes = median(f.wakes[0..f.n]);
    print("{s:<12} {d:>7} {d:>10.2} {d:>10.2} {d:>10.2} {d:>9.5} {s:>9} {d:>10}  {s}\n", .{
        row.id, 1, f.wall[0], wall, cpu, wakes, "-", row.ops, row.what,
    });
    if (std.posix.getenv("BENCH_JSON") == null) return;
    print("{{\"row\":\"{s}\",\"workers\":1,\"wall_min_ns\":{d:.3},\"wall_median_ns\":{d:.3}," ++
        "\"cpu_median_ns\":{d:.3},\"wakes_per_op\":{d:.6},\"ops\":{d},\"repetitions\":{d}}}\n", .{
        row.id, f.wall[0], wall, cpu, wakes, row.ops, f.n,
    });
}

fn print_header() void {
    print("{s:<12} {s:>7} {s:>10} {s:>10} {s:>10} {s:>9} {s:>9} {s:>10}  {s}\n", .{
        "row", "workers", "min ns", "median", "cpu", "wakes", "calls", "ops", "operation",
    });
}

fn print(comptime format: []const u8, args: anytype) void {
    var buffer: [512]u8 = undefined;
    const text = std.fmt.bufPrint(&buffer, format, args) catch die("a line is too long", .{});
    std.fs.File.stdout().writeAll(text) catch die("cannot write", .{});
}

pub fn die(comptime format: []const u8, args: anytype) noreturn {
    std.debug.print(format ++ "\n", args);
    std.process.exit(2);
}

// ---- command line

const Asked = struct {
    reps: usize = 9,
    names: [64][]const u8 = undefined,
    n: usize = 0,

    fn has(self: *const Asked, id: []const u8) bool {
        for (self.names[0..self.n]) |name| {
            if (std.mem.eql(u8, name, id)) return true;
        }
        return self.n == 0;
    }
};

fn number(name: []const u8, text: ?[]const u8, most: usize) usize {
    const value = std.fmt.parseInt(usize, text orelse "", 10) catch 0;
    if (value < 1 or value > most) die("{s}: a number from 1 to {d}", .{ name, most });
    return value;
}

fn arguments() Asked {
    var asked = Asked{};
    var args = std.process.args();
    _ = args.skip();
    while (args.next()) |arg| {
        if (std.mem.eql(u8, arg, "--reps")) {
            asked.reps = number(arg, args.next(), reps_max);
        } else if (std.mem.eql(u8, arg, "--workers")) {
            _ = number(arg, args.next(), 1);
        } else if (std.mem.startsWith(u8, arg, "-")) {
            die("unknown option {s}; there are: --workers --reps --list", .{arg});
        } else {
            if (asked.n == asked.names.len) die("too many rows", .{});
            asked.names[asked.n] = arg;
            asked.n += 1;
        }
    }
    return asked;
}

fn is_list() bool {
    const argv = std.os.argv;
    return argv.len == 2 and std.mem.eql(u8, std.mem.span(argv[1]), "--list");
}

/// Command line: [ROW...] [--workers 1] [--reps N], or --list, which names the rows.
pub fn main(rows: []const Row) void {
    if (is_list()) {
        for (rows) |*row| print("{s}\n", .{row.id});
        return;
    }
    const asked = arguments();
    var measured: usize = 0;
    print_header();
    for (rows) |*row| {
        if (!asked.has(row.id)) continue;
        measure(row, asked.reps);
        measured += 1;
    }
    if (measured < asked.n) die("no such row", .{});
}
