// SPDX-License-Identifier: MIT OR 0BSD
// The workload `burst` of bench/rows/placement.c for ZIO: bursts of 1,000 fibers that compute for
// about 1 us each, every one forked from outside the pool, by the main thread through the Unsafe
// API of a runtime; it waits until the whole burst has run, then comes the next.
//
//   Burst [default|bare] [SECONDS [WARMUP]]
//
//   default   Runtime.default, as an application has it
//   bare      the same without the set of root fibers that ZIO keeps for dumps (FiberRoots off)
// Latency: from just before the fork to the first instruction of the fiber, by System.nanoTime.
// CPU time is that of the whole process: garbage collector and compiler threads are part of it.
// Every fiber is accounted for; the exit status says so.
package bench

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}
import zio.{Runtime, RuntimeFlag, Unsafe, ZIO}

object Burst {
  final val Tasks = 1000
  final val MaxSamples = 16 * 1024 * 1024

  // The work of a task: a chain of multiplications that no compiler can shorten.
  private def chain(n: Int, seed: Long): Long = {
    var x = seed
    var i = 0
    while (i < n) {
      x = x * 6364136223846793005L + 1442695040888963407L
      i += 1
    }
    x
  }

  // Steps of the chain in a microsecond: the fastest of many tries, once it is compiled.
  private def stepsPerUs(): Int = {
    val n = 10000
    var best = Long.MaxValue
    var sink = 1L
    for (_ <- 0 until 20000) {
      val from = System.nanoTime()
      sink = chain(n, sink)
      best = math.min(best, System.nanoTime() - from)
    }
    if (sink == 0) println("never")
    math.max(1, (n * 1000L / best).toInt)
  }

  private final class Runner(runtime: Runtime[Any], steps: Int) {
    val samples = new Array[Long](MaxSamples)
    var taken = 0
    private val latency = new Array[Long](Tasks)
    private val results = new Array[Long](Tasks)
    private val runs = new AtomicInteger
    private val ids = new AtomicLong

    // Gives the number of bursts; fails if a fiber did not run, or ran twice.
    def run(seconds: Double, isCounted: Boolean)(implicit unsafe: Unsafe): Int = {
      val end = System.nanoTime() + (seconds * 1e9).toLong
      var bursts = 0
      while (System.nanoTime() < end) {
        burst()
        bursts += 1
        if (runs.getAndSet(0) != Tasks || ids.getAndSet(0) != Tasks.toLong * (Tasks - 1) / 2)
          sys.error("fibers were lost or run twice")
        if (isCounted && taken + Tasks <= MaxSamples) {
          System.arraycopy(latency, 0, samples, taken, Tasks)
          taken += Tasks
        }
      }
      bursts
    }

    private def burst()(implicit unsafe: Unsafe): Unit = {
      val left = new AtomicInteger(Tasks)
      val done = new CountDownLatch(1)
      var i = 0
      while (i < Tasks) {
        runtime.unsafe.fork(task(i, System.nanoTime(), left, done))
        i += 1
      }
      done.await()
    }

    private def task(id: Int, from: Long, left: AtomicInteger, done: CountDownLatch) =
      ZIO.succeed {
        latency(id) = System.nanoTime() - from
        results(id) = chain(steps, from)
        runs.incrementAndGet()
        ids.addAndGet(id)
        if (left.decrementAndGet() == 0) done.countDown()
      }
  }

  private def cpuTime(): Long =
    java.lang.management.ManagementFactory.getOperatingSystemMXBean
      .asInstanceOf[com.sun.management.OperatingSystemMXBean]
      .getProcessCpuTime

  private def runtimeOf(kind: String)(implicit unsafe: Unsafe): Runtime[Any] = kind match {
    case "default" => Runtime.default
    case "bare"    => Runtime.unsafe.fromLayer(Runtime.disableFlags(RuntimeFlag.FiberRoots))
    case _         => sys.error("default or bare")
  }

  def main(args: Array[String]): Unit = Unsafe.unsafe { implicit unsafe =>
    val kind = args.lift(0).getOrElse("default")
    val seconds = args.lift(1).fold(1.0)(_.toDouble)
    val warmUp = args.lift(2).fold(5.0)(_.toDouble)
    val runner = new Runner(runtimeOf(kind), stepsPerUs())
    runner.run(warmUp, false)
    val cpu = cpuTime()
    val from = System.nanoTime()
    val tasks = runner.run(seconds, true).toLong * Tasks
    report(kind, tasks, System.nanoTime() - from, cpuTime() - cpu, runner)
  }

  private def report(kind: String, tasks: Long, wall: Long, cpu: Long, runner: Runner): Unit = {
    val sorted = java.util.Arrays.copyOf(runner.samples, runner.taken)
    java.util.Arrays.sort(sorted)
    def at(fraction: Double) = sorted(math.min(sorted.length - 1, (fraction * sorted.length).toInt))
    val workers = java.lang.Runtime.getRuntime.availableProcessors
    val (p50, p99, p999, max) = (at(0.5), at(0.99), at(0.999), sorted.last)
    val rate = tasks * 1e9 / wall
    val perTask = cpu.toDouble / tasks
    println(f"burst            zio-$kind%-7s $workers%2d $rate%9.0f $p50%10d $p99%10d $p999%10d" +
      f" $max%10d        -      - $perTask%6.0f        -        -")
    println(s"""{"workload":"burst","policy":"zio-$kind","workers":$workers,"tasks":$tasks,""" +
      f""""per_s":$rate%.0f,"p50_ns":$p50,"p99_ns":$p99,"p999_ns":$p999,"max_ns":$max,""" +
      f""""cpu_ns":$perTask%.1f}""")
    System.exit(0) // the pool's threads are no reason to stay
  }
}
