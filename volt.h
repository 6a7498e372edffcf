// SPDX-License-Identifier: MIT OR 0BSD
// volt.h 0.1.0 - an async runtime for C on Linux, in one header: tasks on all cores, timers,
// sockets, locks, channels. One file of the program defines VOLT_IMPLEMENTATION before its first
// include; all other files only include volt.h. A first program:
//
//     #define VOLT_IMPLEMENTATION
//     #include "volt.h"
//     #include <stdio.h>
//
//     typedef struct { volt_frame frame; int left; } countdown; // all that survives an await
//
//     static volt_poll countdown_run(volt_cx *cx, void *arg) {
//         countdown *c = (countdown *)arg;
//         VOLT_BEGIN(cx, c); // a later call goes on at the await
//         for (c->left = 3; c->left > 0; c->left--) {
//             printf("%d\n", c->left);
//             VOLT_AWAIT(volt_sleep(cx, VOLT_MS(100))); // other tasks run meanwhile
//         }
//         VOLT_END(0); // the result, which volt_run returns
//     }
//
//     int main(void) {
//         countdown c = { .left = 0 }; // the frame must be zeroed
//         return volt_run(NULL, countdown_run, &c);
//     }
//
// `cc -O2 -pthread countdown.c && ./a.out` prints 3, 2 and 1. An async function awaits another one
// by VOLT_AWAIT(rc, other_run(cx, &s->other)), where `other`, the state of that function, is a
// member of *s; VOLT_SPAWN starts a task. Read the eight rules below first.
//
// Contents (search for the marker):
//   >>manual     the model, the rules, results, cancellation, threads, memory, limits
//   >>config     macros that you may define before including volt.h
//   >>types      polls, frames, nodes, objects
//   >>await      VOLT_BEGIN, VOLT_AWAIT, VOLT_END, arms
//   >>api        every function with its contract
//   >>cxx        spawning from C++
// The implementation begins at >>terms, with its own contents.
#ifndef VOLT_H
#define VOLT_H

//==================================================================================================
// >>manual  the model, the rules, results, cancellation, threads, memory, limits
//==================================================================================================
// ---- the model
// A task is a function and a struct. The struct begins with a `volt_frame` and holds every value
// that must survive a wait. The function runs from VOLT_BEGIN to the first wait that cannot
// complete at once, and returns to the worker that called it. When the wait can complete, a worker
// calls the function again, and VOLT_BEGIN jumps to the place where it stopped. Each such call is a
// poll of the task. A function that waits may be awaited by another one: the struct of the inner
// function is then a member of the struct of the outer one, and nothing is allocated.
//
// A worker is a thread with a queue of runnable tasks, a timer wheel and an epoll instance. Idle
// workers steal tasks from busy ones. A task runs on one worker at a time and may resume on a
// different one. A worker without work sleeps without a time limit: an idle program uses no CPU.
//
// volt_run makes the calling thread worker 0. Unless .workers is 1, it starts a second worker, so
// that one is free to be the watchdog, and more when there is work for them. When the root task has
// ended, volt_run cancels all other tasks, waits for them, and returns the result of the root task.
// volt_create, volt_block_on, volt_shutdown and volt_destroy are for programs that keep a runtime
// while they do other things. A guest (volt_rt_fd, volt_rt_step) runs inside an event loop that the
// application already has. One process may have several runtimes; they share nothing.
//
// ---- terms
//   async function    `volt_poll f(volt_cx *cx, void *state)` with VOLT_BEGIN .. VOLT_END
//   task, state   an async function together with its state struct; started by a spawn
//   root task     the task of volt_run or volt_block_on
//   poll          one call of a task by its worker. A volt_poll is the value of such a call, or of
//                 the operation in an await: a result, or "pending"
//   await         a wait of an async function, by VOLT_AWAIT
//   handle, waker     references to a task: to wait for its end, and to have it polled again
//   group, child  a set of tasks that one task has spawned and waits for, and one of them
//   grant         a permit, slot or message that is set aside for a waiter whose turn has come
//   leaf          an awaited operation that is not an async function of its own: a sleep, a read
//   scope         the awaits that one cancellation reaches: those of a whole task, or those inside
//                 a volt_within, a volt_with_token, or an arm that has lost
//   arm           one branch of VOLT_SELECT, whose first arm to complete wins, or of VOLT_JOIN_ALL
//   shield        a part of a function in which awaits ignore cancellation
//   token         a stop flag that any number of tasks can wait for
//   permit        the unit that a semaphore counts
//   watchdog      an idle worker that checks whether another worker is stuck in a poll
//   ring, LIFO slot   the queue of a worker, and the slot for the task that its tasks have woken or
//                     spawned last
//   shared queue  the queue from which all workers take (the injector in the implementation)
//   inbox         a queue of one worker for tasks that come from outside the workers
//   park          to sleep until there is work
//   slab          64 KiB of memory from which tasks of one size are allocated
//   generation    a number that tells two uses of the same descriptor number apart
//   channel       any of volt_chan, volt_queue, volt_oneshot, volt_bcast, volt_watch
//
// ---- eight rules
//  1. Values that must survive an await live in the state struct; locals do not survive it. An
//     initialised local must not stand above an await in its block; it may stand in a block of its
//     own between two awaits. The lines above VOLT_BEGIN run again at each poll: they hold only
//     the pointer to the state, and const locals computed from members that never change.
//  2. Buffers, and all objects whose address is passed to a wait, live in the state struct, too.
//  3. Await exactly one poll, with at most one await on a line, and test its result afterwards. To
//     wait for several at once, use VOLT_SELECT or VOLT_JOIN_ALL over VOLT_ARM, in a function with
//     VOLT_BEGIN.
//  4. The arguments of an awaited call are evaluated at each poll, and so is the whole body of a
//     function that returns a volt_poll without VOLT_BEGIN: keep both free of side effects.
//  5. No await inside a `switch` of your own: move the switch or the await to another function.
//  6. `break` and `continue` belong to your loops. VOLT_RETURN(x) ends the function.
//  7. A negative result is -errno. On -ECANCELED clean up and return: all further awaits give it.
//  8. After an await the task may be on another thread: keep no thread-local pointer and no pthread
//     mutex across it.
//
//   breach                                     reported by
//   poll ignored, stored, compared, returned   the compiler; an ignored call of an async function
//                                              of your own: clang, C++17, C23, else a debug build
//   await outside VOLT_BEGIN, twice on a line  the compiler
//   frame that is not the first member         the compiler
//   arms, children or handles by value         the compiler
//   stray `break` (rule 6)                     the compiler if it optimises; else all builds stop
//   await inside a `switch` (rule 5)           the compiler, unless NDEBUG is defined; else all
//                                              builds stop when the task resumes
//   initialised local across an await (1)      gcc -Wjump-misses-init, clang
//                                              -Wconditional-uninitialized, C++ always
//   local above VOLT_BEGIN (1)                 tests/static/above_begin.sh only
//   buffer or object on the stack (2)          a debug build, for what is passed to volt
//   side effect in an awaited call (4)         nothing
//   frame not zeroed, polled after its end     all builds
//   wait outside an await, arm used twice      a debug build
//   thread-local or pthread mutex (8)          nothing
//   result of a spawn ignored                  the compiler
//   descriptor closed by close(2)              a debug build, by .log; see "descriptors"
// "The compiler" stands for gcc and clang, in C and in C++, with -Wall -Wextra. A debug build is
// one without NDEBUG. Where the table says that it reports a breach, it stops and names the line,
// except for the last row.
//
// ---- results
// A result >= 0 is success, a negative one is -errno, and volt_strerror has a text for it. There is
// no error object, and errno is not set. A function returns `volt_poll` if and only if it may wait;
// its call is legal only inside VOLT_AWAIT, VOLT_ARM, or one of volt_within, volt_before and
// volt_with_token, and in a poll function without VOLT_BEGIN that returns its result. A function
// whose name contains `try_` never waits; one whose name ends in `_sync` blocks the thread. Errors
// of the kernel are passed on unchanged. The results that volt itself gives:
//   -ECANCELED    the scope of this wait was cancelled. Nothing was consumed, except by a
//                 volt_read_exact, volt_write_all or volt_writev_all that had begun (see
//                 volt_progress), a volt_put_wait or volt_reader_read_exact (see volt_writer_moved,
//                 volt_reader_moved), a volt_copy (which can go on), a volt_relay, and a
//                 volt_blocking_detach, whose function may run on. volt_group_spawn: the group is
//                 being closed. volt_token_hook: the token is cancelled
//   -ETIMEDOUT    volt_within, volt_before, `_sync`: the time is up and the inner wait has ended.
//                 volt_timer_fired tells it from the same result of the inner wait. volt_run:
//                 .drain_timeout has passed. volt_relay: no byte has moved. From the kernel: a dead
//                 connection
//   -EAGAIN       a `try_` function would have to wait. volt_try_join: the task has not ended.
//                 volt_watch_set_if: another writer was first. volt_create: no thread could be
//                 started. volt_blocking*, volt_file_*, volt_resolve: no thread could be started;
//                 volt_resolve also: the name server does not answer. volt_connect: the backlog of
//                 a unix listener is full. volt_dump: `fd` took nothing for a second
//   -EPIPE        the peer, channel, semaphore or tracker is closed. volt_read_exact, records: the
//                 stream ended early
//   -EMSGSIZE     a message, line, record or output that is too long for its buffer, or will never
//                 fit into it
//   -ENOBUFS      volt_put*: no room now. From the kernel: no memory for a message
//   -EBADMSG      volt_read_record: a negative length
//   -EOPNOTSUPP   volt_stream_ready, volt_reader_ready: the stream has no such wait
//   -ENOTSOCK     an operation of sockets on another file
//   -ESRCH        volt_process_signal: the process has ended
//   -ENODEV       an address with an interface that does not exist
//   -EOVERFLOW    more permits, members or entries than can be counted. volt_sub_recv: messages
//                 were lost. Files: an offset beyond the off_t of the C library
//   -EBADF        not a descriptor, or closed during the wait
//   -ENOMEM       out of memory; nothing was consumed and the task can continue
//   -EMFILE, -ENFILE    no descriptor is left for the runtime or the socket
//   -ENOSPC       more descriptors in epoll than the system allows. volt_addr_format: no room
//   -EFBIG        volt_file_load: the file is larger than the buffer
//   -EFAULT       an address that cannot be accessed; a path that is NULL
//   -EINVAL       misuse that a program can handle: a frame that is not zeroed, an empty handle, a
//                 configuration out of range, an invalid address, a guest-mode call on a runtime
//                 without .is_guest, a poll set that is not open, a group that does not collect, a
//                 message of the wrong size
//   -EAFNOSUPPORT an address family that volt cannot format or the system does not have
//   -ESHUTDOWN    the runtime accepts no new tasks. volt_rt_step: all tasks have ended
//   -EDEADLK      a call that blocks, made on a worker
//   -EINPROGRESS  volt_shutdown called by a task: the shutdown has begun
//   -EBUSY        volt_destroy: the runtime is still in use. volt_rt_step: another thread makes a
//                 step. VOLT_DUMP_CRASH: a lock is held. volt_serial_open: another process has the
//                 line. volt_process_adopt: there is a process
//   -ENOENT       volt_group_next: no child and no result is left. volt_resolve: no such name.
//                 volt_worker_stats: no such worker
//   -EIO          volt_resolve: the system's resolver failed
//   -ENOSYS       compiled without VOLT_TRACE
//   -ECHILD       called by a forked child. volt_process_*: no process to wait for
// Running out of memory, descriptors or threads is an error of the call that needed them, never an
// abort. The program is stopped only for misuse that no result could report.
//
// ---- cancellation
// Cancellation is cooperative and level-triggered. After volt_cancel, an expired volt_within, a
// cancelled token under volt_with_token or a lost VOLT_SELECT, each await in that scope gives
// -ECANCELED, until the outermost function of the scope has returned. No function is ended from
// outside. An await that gives -ECANCELED has consumed nothing, but for the exceptions under
// "results". The task to join, the bytes to read and the connection to accept remain for the next
// await; volt_connect closes the socket that it has opened. So each loop around awaits needs a way
// out on negative results. A loop that checks only for success will spin: after cancellation every
// await fails at once, and a select fires no arm.
//
//   volt_cancel          one task          volt_shutdown       every task of the runtime
//   volt_group_cancel    the children      volt_within, volt_before, VOLT_SELECT   inner polls
//   volt_token_cancel    each volt_with_token of the token and of the tokens below it
//
// When a cancellation meets the completion of a wait, the wait has exactly one of two outcomes: its
// result, or -ECANCELED with nothing consumed. -ECANCELED wins if the cancellation is seen first,
// even where data is ready; a permit, a message or a lock that was already granted passes to the
// next waiter. Operations that cannot be undone give their result instead: a call on the pool that
// has begun (so the descriptor of a volt_file_open is never lost), a rendezvous whose message was
// taken, a barrier whose round is complete, a condition variable that is locking its mutex again. A
// losing arm leaves such a result in its `value`. A time limit cancels later than volt_cancel does:
// after the deadline the inner wait is tried once more, and only then cancelled. So volt_within
// gives a result that is there in time; otherwise it cancels the inner poll, and gives -ETIMEDOUT
// if that ends with -ECANCELED. A task that is cancelled before its first poll is still polled, so
// that it can release what its state owns.
//
// Between volt_shield_begin and volt_shield_end awaits work although the task is cancelled, so that
// a cleanup can wait; the shield has a time limit of its own. volt_within and VOLT_SELECT return
// when the inner functions have finished their cleanup, never earlier: nothing is left running, and
// the time limit is exceeded by the duration of the cleanup.
//
// A shutdown cancels all tasks and waits until they have ended. volt_run begins it when the root
// task has ended, or when a task calls volt_shutdown; .drain_timeout counts from the moment worker
// 0 sees it, so not while that worker is stuck in a poll. A root task that waits in
// volt_group_close has not ended: that call has no time limit for the children. For a hard limit
// create the runtime by volt_create, call volt_shutdown with a time limit from the main thread, and
// if it returns a number of tasks, log and _exit: the process cannot free the memory of a task that
// still runs. A shutdown does not end a `_sync` wait of a thread on a lock or channel, because
// these objects belong to no runtime; the time limit of the wait does.
//
// ---- time
// volt_time counts nanoseconds of CLOCK_MONOTONIC, which stands still while the machine sleeps.
// Timers are kept in ticks of 1/16 ms (VOLT_TICK_NS) and rounded up. A sleep never ends early; it
// may end up to one tick late, plus the delay of the system: Linux ends a wait about 50 us late
// (prctl, PR_SET_TIMERSLACK), before 5.11 up to 1 ms. A worker wakes once for all timers of a tick:
// a longer tick saves wake-ups where many timers end at different moments. Deadlines up to 292
// years ahead are legal. VOLT_NEVER is the largest number: do not add to it.
//
// ---- choosing a lock or a channel
// Locks and channels suspend the task and not the worker, allocate nothing, and are plain memory:
// zeroed (volt_barrier, volt_chan, volt_bcast and volt_watch need their VOLT_..._INIT), and never
// destroyed, unless made by volt_chan_create.
//   exclusive access, also across an await     volt_mutex; many readers or one writer: volt_rwlock
//   at most N at a time, or a rate limit       volt_sem
//   initialisation that happens once           volt_once
//   a condition that became true               volt_event; a count of parts to finish:
//                                              volt_wait_group
//   no new users, and all have left            volt_tracker
//   a condition to be checked again            volt_notify, volt_cond
//   all have arrived, continue together        volt_barrier
//   messages, many to many, with back-pressure volt_chan; without a buffer: VOLT_CHAN_RENDEZVOUS
//   messages, unbounded, allocated by the sender    volt_queue
//   one value, once                            volt_oneshot
//   every message to every subscriber          volt_bcast; slow subscribers lose the oldest
//   the newest value only                      volt_watch; a volt_watcher needs no closing
// A volt lock is held by a task, not by a thread. A pthread mutex held across an await would be
// unlocked by another thread, and blocks a worker in the meantime. C has no destructors to unlock;
// the pattern that works is a function with a single way out behind the lock:
//
//     // fragment
//     typedef struct { volt_frame frame; volt_mutex *lock; int *sum, n, rc; } adder;
//     static volt_poll adder_run(volt_cx *cx, void *arg) {
//         adder *a = (adder *)arg;
//         VOLT_BEGIN(cx, a);
//         VOLT_AWAIT(a->rc, volt_mutex_lock(cx, a->lock));
//         if (a->rc < 0) VOLT_RETURN(a->rc); // cancelled: it is not locked
//         *a->sum += a->n;
//         volt_mutex_unlock(a->lock);
//         VOLT_END(0);
//     }
//
// In a cancelled task an await between lock and unlock gives -ECANCELED, too: unlock first, then
// return. A function with several ways out is best locked as a whole, by an outer function that
// locks, awaits the inner one and unlocks.
//
// ---- blocking calls
// A poll that blocks holds up its worker. volt_blocking runs a function on a pool of threads and
// suspends the task until it returns; volt_blocking_detach can also abandon a function that hangs.
// volt_block_in_place calls a function in the middle of a poll; another thread takes over the
// worker until it returns. That costs two thread switches, or none if the function returns before
// the other thread has begun. volt_file_* use volt_blocking; volt_resolve and volt_tcp_connect use
// the same pool.
//
// Threads of the pool start on demand and end after 10 s without work. At most 16 run functions at
// once (.max_blocking_threads), including detached functions that still run; 4 more resolve names;
// each volt_block_in_place may need one more, without a limit. Functions on the pool that wait for
// other functions on the pool may deadlock once 16 of them do so. A shutdown cancels the calls that
// have not begun, and waits for those that have.
//
// ---- order and placement
// Each worker has a ring of 256 runnable tasks, which it runs first in, first out, and a LIFO slot:
// the task that a running task has woken or spawned last runs next, while its data is still in the
// cache. After 3 tasks from the slot in a row (VOLT_LIFO_MAX) the ring has its turn, so nothing
// starves. Tasks woken by events or timers, several woken at once, and yields go to the ring. If
// one poll spawns more tasks than the ring has room for, they wait in batches of half a ring, of
// which the newest runs first; every 8 ms up to 128 tasks of the oldest batch move to the shared
// queue. So a tree of tasks is walked depth first and has few of its tasks alive at a time.
//
// A task that a worker spawns or wakes stays with that worker until an idle worker steals it, or
// its queues are full. Three kinds cannot be stolen from a worker that makes progress: the task in
// the LIFO slot; up to 8 tasks that the worker has claimed for its next microsecond; and, while
// most polls finish their task in less than 128 ns (VOLT_STEAL_COST_NS), most or all of the others,
// since stealing would cost the victim more than it saves. If the worker is stuck in a poll, the
// watchdog moves all of them to another worker.
//
// A spawn or wake-up by a thread that is not a worker goes where .placement says: to one shared
// queue (0, VOLT_PLACE_SHARED), or to the inbox of one worker. That worker is one that sleeps and
// has nothing to do, otherwise the less loaded of two random ones (VOLT_PLACE_TWO) or the least
// loaded of all (VOLT_PLACE_LEAST). The load of a worker is its queued tasks and the running one.
// Idle workers empty the inboxes of others, so a bad choice costs time, but no task waits while a
// worker searches for work. Blocked workers get nothing, nor does a guest that has other workers.
//
//   work from outside                   shared           two choices, least loaded
//   one source, short tasks             simplest         same throughput, more steals
//   bursts from one thread              shortest tails   same median; the burst waits at a few
//   many sources, workers on CPUs each  one lock for all a lock per worker
//   more workers than CPUs              good             longer tails: the chosen worker may have
//                                                        no CPU
//   order of one source                 kept             kept at each worker only
// Each line compares the first policy with the other two. `make bench-placement` measures all three
// on the machine at hand.
//
// ---- threads: which function may be called where
// Each contract says it as `where`:
//   any thread     - also a thread that volt has never seen. The call does not wait for tasks or
//                    hooks, except volt_shutdown and volt_token_unhook, which say so
//   inside a task  - needs the volt_cx of the poll that is running
//   plain thread   - runs no worker of any volt runtime at that moment: the call may block, or runs
//                    a worker itself
//
//   any thread    volt_create, volt_destroy, volt_shutdown, volt_rt_fd, volt_effective_config,
//                 volt_stats, volt_worker_stats, volt_dump*, volt_trace*, volt_histograms,
//                 volt_health, volt_strerror, volt_log_stderr, volt_rt_spawn*, volt_task_*,
//                 volt_try_join, volt_cancel, volt_detach, volt_wake, volt_waker_release,
//                 volt_result, volt_progress, volt_handle_is_set, volt_group_collect,
//                 volt_group_cancel, volt_now, volt_interval_init, volt_token_* but for the wait,
//                 volt_addr_*, volt_local_addr, volt_peer_*, volt_listen*, volt_sock_*,
//                 volt_set_*, volt_rt_close, volt_pollset_open, volt_pollset_set, volt_udp_open,
//                 volt_mcast_*, volt_msg_info_*, volt_unix_*, volt_socketpair, volt_pipe,
//                 volt_tty_*, volt_serial_open, volt_dir_next, volt_signals_open,
//                 volt_process_signal, volt_process_adopt, volt_exit_text, volt_stream_of,
//                 volt_copy_failed_at, volt_relay_*; of volt_mutex_*,
//                 volt_rwlock_*, volt_sem_*, volt_once_*, volt_event_*, volt_wait_group_*,
//                 volt_tracker_*, volt_notify_*, volt_barrier_*, volt_cond_*, volt_chan_*,
//                 volt_queue_*, volt_oneshot_*, volt_bcast_*, volt_sub_*, volt_watch_* and
//                 volt_watcher_* all but the waits; volt_queue_try_pop, volt_sub_* and
//                 volt_watcher_* on one object by one thread at a time
//   plain thread  volt_run, volt_block_on, volt_rt_step, volt_join_sync, volt_pollset_wait_sync and
//                 all others that end in _sync
//   between steps volt_rt_deadline: on any thread, while no thread is inside volt_rt_step
//   its own task  of a reader, a writer or a copier: volt_reader_*, volt_writer_*, volt_buffered,
//                 volt_consume, volt_try_read_*, volt_put*, volt_vputf, volt_unflushed,
//                 volt_copier_init, volt_copied, volt_relayer_init
//   inside a task all functions that take a volt_cx
// A function on the pool, or called by volt_block_in_place (but for the three cases that its
// contract names), is on a plain thread: it may call volt_block_on and volt_join_sync, also of its
// own runtime. Under VOLT_SINGLE_THREAD "any thread" is the thread that made the runtime, inside a
// task or not.
//
// Shared objects: any number of threads may use the same descriptor, token, waker, poll set, lock,
// channel or runtime at once, except to create or destroy it. A handle, a group (except its
// cancel), an interval, a subscription, a watcher and an address are for one thread at a time. So
// volt_cancel on a handle must not run at the same time as a volt_join of that handle, which clears
// it; to stop a task that another task joins, cancel a token or a group.
// The state of a task needs no atomics: each poll sees the writes of the poll before, also on
// another worker. Likewise a new task sees the writes before its spawn, and a join those of the
// ended task. Other data shared by two tasks needs an atomic, or a lock.
//
// ---- ownership: whose memory, and until when
//   state struct        a spawn copies it into the block of the task, where it stays until the task
//                       has ended and no handle or waker refers to it
//   of awaited functions    a member of the caller's struct; each await starts it over
//   root state          the caller's, not copied, until volt_run or volt_block_on returns; after a
//                       -ETIMEDOUT of volt_run tasks still use it
//   runtime             from volt_create until volt_destroy gives 0. The runtime of a volt_run ends
//                       with it: no thread may use it then
//   handle              keeps the result and memory of an ended task until volt_join or
//                       volt_detach. Overwriting a handle leaks its task
//   waker               the same, until volt_waker_release
//   group               in its owner's state (the task that first spawns into it). Its children end
//                       before that task: a group is for children that must not outlive their
//                       parent
//   timer, link, arm, shield    members of the waiting function's state; they disarm themselves
//   token               the application's; a parent outlives its children. Must not be freed while
//                       a task waits for it or a thread cancels it
//   lock, channel       the application's. A caller that a wait or a `try_` call has let through
//                       may free it if no other caller will use it, see "synchronisation" in
//                       >>api; a rendezvous, once the calls of both sides have returned.
//                       volt_chan_destroy frees the buffer of a volt_chan_create, before its
//                       runtime ends
//   descriptor          the application's. volt_close closes it; a descriptor of another library is
//                       closed by that library, after volt_pollset_set(.., 0) or volt_fd_release
//   buffers             members of the state, which volt may use until the wait has returned
//
// ---- memory
// A task takes one slot: 64 bytes (48 with 32-bit pointers), its frame (48 or 32), and the rest of
// its state; in a group 32 more; all rounded up to a size class, by a quarter at most. Slots come
// from slabs of 64 KiB; each worker has a set of slabs per size, and 4 further sets serve spawns
// from outside. A worker returns an empty slab to the system after two trims, one second apart, in
// which it was not needed; it trims only while it works, and keeps one slab of each size. A state
// of more than about 8,000 bytes has a mapping of its own, so that its spawn costs a system call:
// keep large buffers apart. Waits, wake-ups, timers and readiness allocate nothing. Each descriptor
// number in use takes 64 bytes of a table, in pages of 64. A runtime takes about 30 KiB, 8 KiB and
// a thread stack per worker, 2 descriptors per worker, 1 for the watchdog if there are several
// workers, and 1 more for a guest. The hook .alloc is called by any thread, but never under a lock.
//
// ---- system calls, other than the one that a function is named after
//   all workers idle    none
//   worker that sleeps  epoll_pwait2 or epoll_wait; with several workers after checking for work
//                       once more. The waking thread writes its eventfd, which the worker reads
//   busy worker         epoll_wait after 255 polls or about 100 us; while a task that calls
//                       volt_yield has the worker to itself, at each yield
//   several workers     timerfd_settime when one leaves its sleep, and every 750 us while one is
//                       busy; then an idle one checks on it
//   timers              none: epoll_wait has a timeout. A guest: timerfd_settime
//   descriptor          at its first use, unless volt made it: fcntl, getsockopt, and if it is no
//                       socket also fstat, isatty or open. epoll_ctl at its first wait; in a debug
//                       build at each wait. volt_readable, volt_writable: epoll_ctl or poll at each
//                       wait
//   read, write         one; a read after one that drained a TCP socket: none (not for vectors, nor
//                       for more than 64 KiB; madvise if the buffer has changed and spans pages). A
//                       write to a file that is not a socket, by the thread of volt_run or of a
//                       guest: 3 more, to suppress SIGPIPE. A terminal, or a pipe as 0, 1, 2: fstat
//                       twice, or fcntl 3 times. A debug build: fcntl or fstat before each call on
//                       a file that is not a socket
//   volt_read_ready     none while the readiness is known. volt_copy: splice, and for the first
//                       bytes of a burst pipe2, unless the runtime has a pipe left
//   volt_file_pread     preadv2, and if the data is not cached, pread by a pool thread
//   volt_process_start  by a pool thread: vfork, pipe2 and read for the error of the exec,
//                       pidfd_open; waitid twice at the end. Before Linux 5.3 waitid every 10 ms
//   expired time limit  the inner call once more, after a poll
//   spawn from outside  none, or a write to an eventfd; a thread that waits: futex
//   contended lock      futex, and membarrier, which interrupts the running threads of the process;
//                       in exchange an unlock is a plain store
//   memory              mmap and munmap of slabs
//   start               epoll_create1, eventfd, timerfd_create, madvise, clone. For the defaults of
//                       .workers and .seed: sched_getaffinity, files of the cgroup, getrandom. Once
//                       per process membarrier, some ms if it has other threads by then
// Calls and flags that an old kernel or a seccomp filter lacks are replaced, with nothing to
// configure: epoll_pwait2, accept4, flags of eventfd, FUTEX_WAIT_BITSET, getrandom, SO_PROTOCOL,
// recvmmsg, sendmmsg, UDP_SEGMENT, UDP_GRO, preadv2, splice, pidfd_open;
// MADV_WIPEONFORK (then calls from outside use getpid), EPOLLEXCLUSIVE (then the watchdog wakes all
// sleepers), membarrier (then a lock costs one more atomic operation). A filter that refuses
// membarrier must be installed before the first runtime is created: later it stops the program.
//
// ---- limits
// A poll that computes or blocks for long holds up its worker. An idle worker takes over its
// descriptors, timers and queued tasks within 2 ms; it cannot if there is one worker, or if all are
// stuck. A file on a disk counts as ready at all times: volt_read would block the worker,
// volt_file_pread does not. A runtime has at most 1024 workers (more: -EINVAL), and descriptor
// numbers below 4,194,304 (others: -EBADF). One await has at most 200 arms, a task 253 nested
// shields and 65535 simultaneous waits (each child of volt_join_all counts); one more stops the
// program. A hand-written poll function that calls operations of volt must be awaited by a function
// with VOLT_BEGIN. There is no io_uring backend, and no Windows, macOS or BSD. There is no TLS
// either: examples/adapters/openssl.h makes OpenSSL a volt_stream. A child that must end with its
// parent has to do so itself: PR_SET_PDEATHSIG would follow the pool thread that has started it.
//
// ---- input and output: which function for which purpose
//   bytes of a socket, pipe, terminal    volt_read, volt_write, their _exact and _all forms
//   many idle connections                volt_read_ready, then volt_try_read into the stack
//   datagrams, packets                   volt_recv, volt_send ...; UDP: volt_udp_open
//   many datagrams at once               volt_recvmmsg, volt_sendmmsg; volt_send_segments and
//                                        volt_recv_segments, several times as fast
//   a datagram and how it came           volt_recv_segments, also for single ones
//   lines, records                       volt_reader, volt_writer
//   from one connection to another       volt_copy, volt_relay; a file: volt_sendfile
//   files                                volt_file_...; a configuration: volt_file_replace
//   a unix socket with access control    volt_listen_addr with .mode, volt_peer_cred
//   descriptors to another process       volt_send_fds, volt_recv_fds
//   a serial line                        volt_serial_open, then as a socket
//   TLS, a test without a network        a volt_stream of your own, for readers, writers, copies
//   a signal                             volt_signals_open before volt_run, volt_signals_next
//   a child process                      volt_process_start, volt_process_wait; its output alone:
//                                        volt_capture_run
//   any other descriptor                 volt_io, with the system call as a function
// A program that echoes datagrams until a signal comes:
//
//     // fragment
//     #include <signal.h>
//     typedef struct {
//         volt_frame frame;
//         int udp, signals;
//         volt_arm datagram, signal;
//         volt_addr from;
//         char buf[1500];
//         int64_t n;
//     } echo;
//     static volt_poll echo_run(volt_cx *cx, void *state) {
//         echo *s = (echo *)state;
//         VOLT_BEGIN(cx, s);
//         for (;;) {
//             VOLT_AWAIT(VOLT_SELECT(
//                 VOLT_ARM(&s->datagram,
//                          volt_recvfrom(cx, s->udp, s->buf, sizeof s->buf, 0, &s->from)),
//                 VOLT_ARM(&s->signal, volt_signals_next(cx, s->signals, NULL))));
//             if (s->signal.fired) break;
//             s->n = s->datagram.value;
//             if (s->n < 0) continue; // too long for the buffer, for example
//             VOLT_AWAIT(s->n, volt_sendto(cx, s->udp, s->buf, (size_t)s->n, 0, &s->from));
//         }
//         VOLT_END(0);
//     }
//     static int echo_main(void) { // before any other thread starts
//         static const int stop[] = { SIGINT, SIGTERM };
//         static echo s;
//         volt_addr here;
//         volt_addr_make(&here, "127.0.0.1", 7007);
//         s.signals = volt_signals_open(stop, 2);
//         s.udp = volt_udp_open(&here, NULL);
//         if (s.signals < 0 || s.udp < 0) return 1;
//         return volt_run(NULL, echo_run, &s) < 0;
//     }
//
// Datagrams and errors: an error of a connected socket, such as -ECONNREFUSED, belongs to a
// datagram that was sent earlier. The call that returns it has sent or received nothing, and the
// next one may succeed, which proves nothing either. A socket that is not connected gets no such
// errors.
//
// ---- descriptors
// Close descriptors with volt_close, because volt keeps a table entry for each number that it has
// used. If a number was closed in another way and now belongs to a different file, a debug build
// notices it before a call that would block the worker or a wait that would never end, logs it and
// starts over with the new file. A release build notices it only for the numbers 0 to 2, and for a
// number that was a socket and now is none.
//
// Sockets get MSG_DONTWAIT with each call, whatever their mode is; a listener becomes non-blocking
// at its first volt_accept. A terminal, and standard input, output and error if they are pipes, are
// shared with other processes and must stay blocking. volt opens a description of its own for them
// (by /proc/self/fd, one more descriptor). Call volt_fd_release before a dup2(2) over such a
// number; otherwise the change is noticed at the next call, and the old pipe stays open until then.
// Where no own description can be opened (a terminal of another user, /dev/tty, no /proc), the
// descriptor is non-blocking for the duration of each call, also for the processes that share it.
// All other files become non-blocking at their first use and stay so after volt_fd_release. If a
// process that shares one of them clears the flag, a read or accept may block the worker.
//
// ---- signals
// The threads of a runtime block all signals except those that report a fault: SIGSEGV, SIGBUS,
// SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT. Other signals go to the application's threads. The
// thread of volt_run keeps its mask, and pthread_cancel does not end it before volt_run returns. To
// stop on a signal, call volt_signals_open in the main thread before any other thread starts.
// A process of volt_process_start has no signal blocked or ignored. A child that a task starts in
// another way inherits the mask of its thread, in which SIGTERM would not end it: give it an empty
// one, by POSIX_SPAWN_SETSIGMASK, or by pthread_sigmask between fork and exec.
//
// ---- fork
// A forked child has no workers and shares the epoll instances of its parent. In the child,
// functions that take a volt_rt give -ECHILD or do nothing, wake-ups do nothing, and volt_rt_close
// only closes, so that the parent is not disturbed. Functions that take a lock (volt_token_*,
// volt_group_cancel) may hang. A child forked by a task must call exec or _exit before the poll
// returns; tasks that it spawns never run.
//
// ---- a program that is stuck
//  1. Set .log (volt_log_stderr). It names, with its line, a task that ignores its cancellation,
//     that waits for nothing (debug builds) or that outlives a shutdown; and a task that is given
//     a descriptor number that was closed without volt_close.
//  2. volt_shutdown with a time limit gives the number of tasks that are left, and logs where the
//     first 16 of them wait.
//  3. volt_stats: if only `polls` grows, a task spins. If nothing grows, all tasks wait. If
//     `rescued` grows, a poll blocks its worker. `spawned` - `completed` tasks are alive, `queued`
//     of them wait for a worker, and the workers were awake for `busy_ns` in total.
//  4. volt_dump lists every worker and every task, from any thread while the program runs, and from
//     a crash handler. One line of it,
//         task 2.0 client 7, 1.201 s old: waiting at chat.c:9 for readable fd 8, 1.201 s
//     says: the number of the task; its volt_name, or else its function and where it was spawned;
//     its age; its state and the line of its last await; the object that it waits for, and for how
//     long. The other states are "running", "queued" (runnable) and "ended" (still referred to).
//  5. In gdb, examples/gdb/volt.py lists tasks and workers, also of a core file. By hand: the line
//     of the await of a suspended function is its frame.node_.resume_line_.
//
// ---- a program that is slow: compiled in by VOLT_TRACE=1
//  1. .slow_poll logs each poll that took longer, with the await that it resumed from. volt_health
//     reports how long a poll has been running, and how long runnable tasks have been waiting.
//  2. volt_histograms: the durations of polls, and of the waits for a worker after a wake-up.
//  3. volt_trace: the last events of the workers, and which task woke which, for ui.perfetto.dev.
//  4. .tracer: each event as it happens, for an exporter of your own.
//  5. examples/15_dashboard.c shows all of this live in a browser.
// Also without VOLT_TRACE there are probes if <sys/sdt.h> existed at compile time; perf list sdt,
// bpftrace `usdt:PROGRAM:volt:poll` and gdb's `info probes` list them. Their arguments:
//     poll    task, worker, text: where spawned and function or volt_name, text: last wait
//     polled  task, worker, 1 if it waits and 0 if it has ended
//     wake    task, worker of the waking task, or 0
//     park, unpark    worker
//     steal   worker, tasks taken
// Tasks and workers are given by their addresses.
//
// ---- waiting for an event of your own
// A hand-written poll function checks a condition, and is pending until a waker wakes its task:
//
//     // fragment
//     typedef struct {
//         int is_done;
//     } job;
//     static volt_poll job_wait(volt_cx *cx, const job *j) {
//         if (__atomic_load_n(&j->is_done, __ATOMIC_ACQUIRE)) return volt_ready(0);
//         return volt_is_cancelled(cx) ? volt_ready(-ECANCELED) : volt_pending();
//     }
//
// Before VOLT_AWAIT(job_wait(cx, j)) the task makes a waker by volt_waker_retain and hands it to
// the thread that does the job. When the job is done, that thread copies the waker, sets the flag,
// then wakes and releases: once the flag is set the task may end, and its state with it.
//
// ---- questions
// Why a struct and not locals? C can keep locals only on a stack per task: kilobytes, of a size
// that must be guessed, instead of 112 bytes.
// Can a wake-up be lost? A model checker has found none within its bounds, see tests/README.md.
// May I call a blocking library? By volt_blocking or volt_block_in_place; or, if it offers
// descriptors to wait for, with a poll set.
// Why does my select spin? See the end of the first paragraph of "cancellation".
// How do I use it from C++? As from C. The state is a plain struct; reach C++ objects by pointer.

//==================================================================================================
// >>config  macros that you may define before including volt.h
//==================================================================================================
// The compile-time configuration. Define a macro before the include, or on the command line. "The
// implementation file" is the file that defines VOLT_IMPLEMENTATION. Bounds and thresholds that
// are rarely changed are in >>tunables.
//   macro                defined in               default
//   VOLT_IMPLEMENTATION  exactly one file         not defined
//   VOLT_STATIC          the implementation file  not defined
//   VOLT_API             all files                `extern`, or `static` with VOLT_STATIC
//   VOLT_NO_IO           all files                not defined
//   VOLT_NO_NAMES        all files                not defined, except with VOLT_NO_IO
//   VOLT_NO_UDP, VOLT_NO_UNIX, VOLT_NO_STREAM, VOLT_NO_SIGNAL, VOLT_NO_PROCESS
//                        all files                not defined, except with VOLT_NO_IO
//   VOLT_NO_FILES        all files                not defined
//   VOLT_DEBUG           all files, equal         1; 0 if NDEBUG is defined
//   VOLT_SINGLE_THREAD   the implementation file  not defined
//   VOLT_NO_MEMBARRIER   the implementation file  not defined
//   VOLT_TRACE           the implementation file  0
//   VOLT_TRACE_CAP       the implementation file  4096
//   VOLT_USDT            the implementation file  1 if <sys/sdt.h> exists, else 0
//
// VOLT_IMPLEMENTATION compiles the implementation into the file that defines it. The include must
// then come before those of the C library, because _GNU_SOURCE must be defined first.
#ifdef VOLT_IMPLEMENTATION
#  ifndef _GNU_SOURCE
// for accept4, pthread_setname_np and epoll_pwait2
#    define _GNU_SOURCE 1
#  endif
#endif
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// VOLT_API is the linkage of the public functions. VOLT_STATIC makes them private to the including
// file, which must then be the implementation file.
#ifndef VOLT_API
#  ifdef VOLT_STATIC
#    define VOLT_API static __attribute__((unused))
#  else
#    define VOLT_API extern
#  endif
#endif

// VOLT_NO_IO leaves out the part "descriptors and sockets" of >>api: reads and writes, sockets,
// addresses, poll sets, host names, and all that is built on them. Files (volt_file_...) stay.
// Single parts of it are left out by VOLT_NO_UDP: volt_udp_open, multicast, control data, segments;
// VOLT_NO_UNIX: descriptors through sockets, credentials, terminals, serial lines; VOLT_NO_STREAM:
// streams, readers, writers, copies, relays; VOLT_NO_SIGNAL; VOLT_NO_PROCESS. VOLT_NO_FILES leaves
// out volt_file_... and volt_dir_... .
//
// VOLT_SINGLE_THREAD leaves out threads. A runtime has one worker, belongs to the thread that made
// it, and nothing in it is atomic. volt_create makes a guest. volt_block_on, volt_join_sync and
// volt_shutdown make the steps of the guest while they wait. A `_sync` function that would have to
// wait for a lock or a channel returns -ETIMEDOUT at once, because no other thread could end the
// wait. Blocking calls and host lookups run inside the poll.
//
// VOLT_NO_MEMBARRIER does without membarrier(2): for seccomp filters that kill the process at that
// call, not for those that make it fail. An unlock then costs one more atomic operation.
//
// VOLT_NO_NAMES leaves out volt_resolve and volt_tcp_connect, and with them getaddrinfo, which a
// statically linked glibc supports only in part.
#ifdef VOLT_NO_IO
#  undef VOLT_NO_NAMES
#  undef VOLT_NO_UDP
#  undef VOLT_NO_UNIX
#  undef VOLT_NO_STREAM
#  undef VOLT_NO_SIGNAL
#  undef VOLT_NO_PROCESS
#  define VOLT_NO_NAMES
#  define VOLT_NO_UDP
#  define VOLT_NO_UNIX
#  define VOLT_NO_STREAM
#  define VOLT_NO_SIGNAL
#  define VOLT_NO_PROCESS
#endif

// VOLT_TRACE=1 records the events of the runtime, at the cost of three clock reads per poll. Each
// worker keeps its last VOLT_TRACE_CAP events (a power of two) for volt_trace, and passes each
// event to .tracer. Polls, and the waits of runnable tasks, are measured for volt_histograms and
// volt_health. Polls longer than .slow_poll are logged. With 0 none of this is compiled in.
//
// VOLT_USDT=1 compiles in probes for perf, bpftrace and SystemTap (provider `volt`), a `nop` each.

// VOLT_DEBUG=1 checks for misuse at run time, such as a wait outside an await, or a buffer on the
// stack, and stops the program with file:line. If two files of a program have different values, the
// linker reports an undefined symbol.
#ifndef VOLT_DEBUG
#  ifdef NDEBUG
#    define VOLT_DEBUG 0
#  else
#    define VOLT_DEBUG 1
#  endif
#endif

//==================================================================================================
// >>types  polls, frames, nodes, objects
//==================================================================================================
// The public types: polls and their context, the objects that tasks wait on, the configuration,
// and the results of the functions that inspect a runtime.
//   - Members whose name ends in _ are private, as are names with two underscores. The notes at
//     them use the notation of >>terms.
//   - "Zero-valid" means that zeroed memory is a valid initial value. Locks and channels need no
//     destructor, except a channel of volt_chan_create. Where an object must be ended, such as a
//     handle or a poll set, a function in >>api does that.
//   - An object that tasks wait on is plain memory of the application, which must not move while
//     it is in use.
// >>manual says which objects several threads may use at once, under "threads", and how long each
// object must exist, under "ownership".
struct iovec;
struct msghdr;
struct mmsghdr;
struct sockaddr;
struct sockaddr;
struct stat;

#define VOLT_VERSION 100 // major * 10000 + minor * 100 + patch

#define VOLT__MUST __attribute__((warn_unused_result))
#define VOLT__STR2(x_) #x_
#define VOLT__STR(x_) VOLT__STR2(x_)
#define VOLT__SITE __FILE__ ":" VOLT__STR(__LINE__)
// Log lines end at the tab; dumps and traces also show the name of the function behind it.
#define VOLT__SPAWN_SITE(fn_) VOLT__SITE "\t" #fn_
#ifdef __cplusplus
#  define VOLT__SASSERT(c_, msg_) static_assert(c_, msg_)
#else
#  define VOLT__SASSERT(c_, msg_) __extension__ _Static_assert(c_, msg_)
#endif
#if defined(__cplusplus) && __cplusplus >= 201703L
#  define VOLT__FALLTHROUGH [[fallthrough]]
#else
#  define VOLT__FALLTHROUGH __attribute__((fallthrough))
#endif
// An attribute of the type volt_poll also covers the async functions of the application. Before
// C23 gcc has no such attribute; a debug build then stops at an async function that is called
// outside an await.
#if (defined(__cplusplus) && __cplusplus >= 201703L) || \
    (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#  define VOLT__NODISCARD [[nodiscard]]
#elif defined(__clang__)
#  define VOLT__NODISCARD __attribute__((warn_unused_result))
#else
#  define VOLT__NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Nanoseconds: a duration, or an absolute time of CLOCK_MONOTONIC. The macros convert from us, ms
// and s. VOLT_NEVER stands for no time limit, or for a time that never comes.
typedef int64_t volt_time;
#define VOLT_US(n_) ((volt_time)(n_) * 1000)
#define VOLT_MS(n_) ((volt_time)(n_) * 1000000)
#define VOLT_S(n_) ((volt_time)(n_) * 1000000000)
#define VOLT_NEVER INT64_MAX

typedef struct volt_rt volt_rt;
typedef struct volt__task volt__task;
typedef struct volt__worker volt__worker;

// The value that an async function returns: a result, or "pending". It is a struct, so that the
// compiler rejects a comparison, an assignment to an int, and a plain `return -EIO`.
typedef struct VOLT__NODISCARD volt_poll {
    int64_t v_;
} volt_poll;
typedef struct volt_cx volt_cx;
typedef volt_poll volt_fn(volt_cx *cx, void *state); // an async function
#define VOLT_POLL VOLT__MUST volt_poll
#define VOLT__PENDING (-4096) // not a result: beyond the range of -errno

// One wait: its links, the task to wake, and the object that is waited for. A frame, a timer, a
// token link and an arm contain one node each.
typedef struct volt__node {
    // frames: the line to resume at; wrappers: flags
    uint32_t resume_line_;
    // IDLE, LINKED, FIRED or CLOSED; changes under the lock of source_
    uint8_t state_;
    // frames: the kind of the current await
    uint8_t kind_;
    // timers and token links: the shield depth at the first poll; arms: flags
    uint8_t shield_base_;
    // timers and token links: the cancel level to restore; children of an array: their shield
    // depth
    uint8_t saved_cancel_level_;
    // what a wait stores between its polls, or the result of a frame that has ended
    union {
        int64_t any_;          // to zero or compare it
        int64_t result_;       // a frame that has ended
        int64_t moved_;        // a read or write: bytes
        uint64_t tick_;        // an armed timer: when it is due
        int64_t was_timeout_;  // a time limit that has ended: 1: its timer has ended the wait
        int64_t permits_;      // a lock: the permits wanted, and counters, see >>sema
        void *data_;           // a rendezvous: the message, or the space for it
        int64_t n_errors_;     // an accept: errors in a row
        int64_t socket_;       // a connect: the socket + 1
        uint8_t arms_[8];      // several arms: counters, see >>combine
        int64_t decider_;      // a join over an array: index of the child that decides, + 1
    } key_;
    // links of a list, under the lock of source_
    struct volt__node *next_, *prev_;
    // the task to wake, or, tagged in the low bits, a scope that points to the task, or a blocked
    // thread
    void *waiter_;
    // wheel, entry of a descriptor, token, group, lock, channel or frame of a child
    void *source_;
} volt__node;

// The first member of every state struct, by the name `frame`. It must be all zero before the task
// starts.
typedef struct volt_frame {
    volt__node node_;
} volt_frame;
// The memory of one volt_within or volt_before, in the state struct. Zero-valid; may be used again
// when the await has ended.
typedef struct volt_timer {
    volt__node node_;
} volt_timer;
// The memory of one volt_with_token, in the state struct. Zero-valid; may be used again when the
// await has ended.
typedef struct volt_token_link {
    volt__node node_;
} volt_token_link;

// One branch of a select or join, in the state struct. Zero-valid; `value` and `fired` are valid
// after the await, until the arm is used again.
typedef struct volt_arm {
    volt__node node_;
    volt__node *parent_;
    int64_t value;  // its result; usually -ECANCELED if it was cancelled or never started
    uint32_t fired; // select: 1 for the winner, 0 for the others; join: 1
    uint8_t state_, shield_depth_, outer_shield_depth_, outer_cancel_level_;
} volt_arm;

// A shield that is open in a frame, or a group that a task owns. A shield ends with its frame; a
// group is closed before its task ends.
typedef struct volt__scope {
    volt__task *task_;
    struct volt__scope *next_;
    volt_fn *close_; // groups: closes a group that the task has left open; shields: NULL
} volt__scope;

// The memory of one volt_shield_begin .. volt_shield_end, in the state struct. Zero-valid.
typedef struct volt_shield {
    volt__scope scope_;
    uint8_t depth_, saved_cancel_level_, has_expired_, open_;
    volt_timer timer_;
} volt_shield;

// The context of one poll, which is passed to every async function. It must not be stored, and is
// not valid after the poll.
struct volt_cx {
    // the current frame, whose node the next leaf uses
    volt__node *frame_;
    volt__task *task_;
    volt__worker *worker_;
    volt_rt *rt_;
    // the innermost await that has suspended in this poll
    const char *site_;
    // top of the stack of the poll: its locals lie below
    const char *stack_;
    // the wait that begins: kind << 24 | argument; or VOLT__REQUEUE
    uint32_t wait_;
    // units of the budget that are left in this poll
    uint16_t budget_;
    // an await is cancelled if and only if shield_depth_ < cancel_level_
    uint8_t cancel_level_, shield_depth_;
    // the budget that was left when cancel_level_ was last raised in this poll
    uint16_t budget_at_cancel_;
    // number of expired time limits around the current await whose last try is this poll
    uint8_t last_tries_;
    // debug: 1 inside the expression of an await
    uint8_t is_awaiting_;
    // debug: the last VOLT_BEGIN or VOLT_AWAIT, which reports of misuse name
    const char *at_;
};

// A reference to a task, which keeps its memory and its result until it is joined or detached. A
// zeroed handle is empty. For one thread at a time.
typedef struct volt_handle {
    volt__task *task_;
} volt_handle;
// A reference by which any thread can wake the task, until volt_waker_release.
typedef struct volt_waker {
    volt__task *task_;
} volt_waker;

// ---- synchronisation objects
// All are zero-valid, except that volt_barrier needs its number of arrivals. "synchronisation" in
// >>api says when an object may be freed.

// The core of mutex, rwlock, semaphore and once: a number of permits, and the waiters with the
// number that each wants.
typedef struct volt__sema {
    uint32_t word_, lock_;
    volt__node *waiters_;
} volt__sema;
typedef struct volt_mutex {
    volt__sema sema_;
#if VOLT_DEBUG
    const volt__task *holder_;
#endif
} volt_mutex;
#define VOLT__SEMA_FIFO 4u
#if VOLT_DEBUG
#  define VOLT_MUTEX_INIT { { 0, 0, NULL }, NULL }
#  define VOLT_MUTEX_FIFO { { VOLT__SEMA_FIFO, 0, NULL }, NULL } // granted in order of arrival
#else
#  define VOLT_MUTEX_INIT { { 0, 0, NULL } }
#  define VOLT_MUTEX_FIFO { { VOLT__SEMA_FIFO, 0, NULL } }
#endif
typedef struct volt_rwlock {
    volt__sema sema_;
    uint32_t is_writing_; // W holder: the hold is that of a writer
} volt_rwlock;
#define VOLT_RWLOCK_INIT { { 0, 0, NULL }, 0 }
typedef struct volt_sem {
    volt__sema sema_;
} volt_sem;
#define VOLT_SEM_MAX 0xfffffffu // the most permits of a semaphore
// A semaphore with n permits, n <= VOLT_SEM_MAX. A zeroed one has none.
#define VOLT_SEM_INIT(n_) { { (uint32_t)(n_) << 4, 0, NULL } }
typedef struct volt_once {
    volt__sema sema_;
} volt_once;
#define VOLT_ONCE_INIT { { 0, 0, NULL } }

// The core of event, wait group, tracker and oneshot: a word, and the waiters, which wait until
// some of its bits have a given value.
typedef struct volt__waitword {
    uint32_t word_, lock_;
    volt__node *waiters_;
} volt__waitword;
typedef struct volt_event {
    volt__waitword waitword_;
} volt_event;
#define VOLT_EVENT_INIT { { 0, 0, NULL } }
typedef struct volt_wait_group {
    volt__waitword waitword_;
} volt_wait_group;
#define VOLT_WAIT_GROUP_INIT { { 0, 0, NULL } }
typedef struct volt_tracker {
    volt__waitword waitword_;
} volt_tracker;
#define VOLT_TRACKER_INIT { { 0, 0, NULL } }
typedef struct volt_notify {
    uint32_t word_, lock_;
    volt__node *waiters_, *watchers_;
} volt_notify;
#define VOLT_NOTIFY_INIT { 0, 0, NULL, NULL }
typedef struct volt_barrier {
    uint32_t lock_, n_, arrived_;
    volt__node *waiters_;
} volt_barrier;
// A barrier that opens at each n-th arrival.
#define VOLT_BARRIER_INIT(n_) { 0, (uint32_t)(n_), 0, NULL }
typedef struct volt_cond {
    uint32_t lock_;
    volt__node *waiters_;
} volt_cond;
#define VOLT_COND_INIT { 0, NULL }

// ---- channels
// Messages are elements of one size, which the caller chooses. The buffer is the caller's, except
// with volt_chan_create, and must exist as long as the channel is used. Only volt_queue and
// volt_oneshot are zero-valid.

// A bounded channel, many to many. VOLT_CHAN_INIT(buf) uses the array `buf` as its buffer.
// VOLT_CHAN_RENDEZVOUS(buf) has no buffer: a sender waits for a receiver. It needs an array of one
// element, for reservations.
typedef struct volt_chan {
    uint32_t lock_, is_closed_;
    // once: bytes per element, capacity, slots of the buffer; a rendezvous: cap_ 0, slots_ 1
    uint32_t elem_, cap_, slots_;
    // under lock: the first slot in use, and the number of messages in the buffer
    uint32_t head_, len_;
    // under lock: free slots that are granted or reserved; messages that are granted
    uint32_t n_slots_granted_, n_msgs_granted_;
    // under lock: counts of volt_chan_retain
    uint32_t n_senders_, n_receivers_;
    // under lock: those of n_slots_granted_ that are reserved
    uint32_t n_slots_reserved_;
    // once
    char *buf_;
    // under lock; watchers_ are the waits for the close
    volt__node *senders_, *receivers_, *watchers_;
    // once: the runtime of volt_chan_create, or NULL
    volt_rt *rt_;
} volt_chan;
#define VOLT__CHAN(buf_, cap_)                                                                  \
    {                                                                                           \
        0, 0, (uint32_t)sizeof((buf_)[0]), (uint32_t)(cap_),                                    \
            (uint32_t)(sizeof(buf_) / sizeof((buf_)[0])), 0, 0, 0, 0, 0, 0, 0, (char *)(buf_),  \
            NULL, NULL, NULL, NULL                                                              \
    }
#define VOLT_CHAN_INIT(buf_) VOLT__CHAN(buf_, sizeof(buf_) / sizeof((buf_)[0]))
#define VOLT_CHAN_RENDEZVOUS(buf_) VOLT__CHAN(buf_, 0)
enum { VOLT_CHAN_SENDER = 1, VOLT_CHAN_RECEIVER = 2 }; // sides, for volt_chan_retain and _release

// An unbounded queue, many to one. Each message contains a volt_queue_node, so that nothing is
// allocated or copied. Zero-valid.
typedef struct volt_queue_node {
    struct volt_queue_node *next_;
} volt_queue_node;
typedef struct volt_queue {
    void *word_;             // the node that was pushed last, and flags
    volt_queue_node *first_; // W receiver: nodes that it has taken already, in order
    uint32_t lock_;
    volt__node *waiters_; // under lock
} volt_queue;
#define VOLT_QUEUE_INIT { NULL, NULL, 0, NULL }

// A channel for one value. Zero-valid.
typedef struct volt_oneshot {
    volt__waitword waitword_;
    int64_t value_; // W sender, before the waitword changes
} volt_oneshot;
#define VOLT_ONESHOT_INIT { { 0, 0, NULL }, 0 }

// A channel that delivers every message to every subscriber. It keeps as many messages as the
// array of VOLT_BCAST_INIT has elements; a slow subscriber loses the oldest ones.
typedef struct volt_bcast {
    uint32_t lock_, is_closed_;
    uint32_t elem_, cap_; // once
    uint64_t sent_;       // under lock: number of messages so far
    uint32_t n_subs_;     // under lock
    char *buf_;           // once
    volt__node *waiters_; // under lock
} volt_bcast;
#define VOLT_BCAST_INIT(buf_)                                                       \
    {                                                                               \
        0, 0, (uint32_t)sizeof((buf_)[0]), (uint32_t)(sizeof(buf_) / sizeof((buf_)[0])), 0, 0, \
            (char *)(buf_), NULL                                                    \
    }
// A subscription to a broadcast. For one thread at a time.
typedef struct volt_sub {
    volt_bcast *bcast_;
    uint64_t next_, lost_; // the message that comes next; messages lost
} volt_sub;

// A channel that holds only the newest value, in the variable that VOLT_WATCH_INIT is given.
typedef struct volt_watch {
    uint32_t lock_, is_closed_, elem_, version_;
    char *buf_;
    volt__node *waiters_;
} volt_watch;
#define VOLT_WATCH_INIT(value_) { 0, 0, (uint32_t)sizeof(value_), 0, (char *)&(value_), NULL }
// A receiver of a watch, with the version that it has seen. It needs no closing. For one thread at
// a time.
typedef struct volt_watcher {
    volt_watch *watch_;
    uint32_t seen_version_;
} volt_watcher;

// ---- tokens, groups, intervals

typedef struct volt__parker { // a blocked thread
    uint32_t is_set;          // futex word [P1]
} volt__parker;
// A stop flag that any number of tasks can wait for. Zero-valid. Cancelling a token also cancels
// its children, which volt_token_init makes.
typedef struct volt_token {
    uint32_t lock_, cancelled_;
    volt__node *waiters_;
    struct volt_token *root_, *parent_, *child_, *next_, *prev_;
    struct volt_hook *hooks_;
} volt_token;
// The memory of one volt_token_hook: a function that is called when its token is cancelled.
typedef struct volt_hook {
    void (*fn_)(void *arg);
    void *arg_;
    volt_token *token_;
    struct volt_hook *next_, *prev_; // under the tree's lock
    uint32_t is_linked_;             // under the tree's lock
    volt__parker done_;              // set when the function has returned; volt_token_unhook waits
} volt_hook;

// A group of child tasks. Zero-valid. The first task that spawns into it becomes its owner, until a
// volt_group_wait, volt_group_next or volt_group_close of that task has found the group empty.
typedef struct volt_group {
    volt__scope scope_;
    uint32_t lock_, n_live_;                // n_live_: members that have not ended
    volt__node *waiters_;                   // under lock
    volt__task *live_, *done_, *done_last_; // under lock: members; results in order of completion
    int64_t error_;                         // under lock: first negative result since the last wait
    uint64_t n_spawned_;                    // under lock
    uint32_t collects_, is_closing_;
} volt_group;

// The behaviour of volt_interval_next when ticks were missed.
typedef enum volt_missed {
    // one result for each missed tick, without a wait: the number of results stays right
    VOLT_MISSED_BURST,
    // missed ticks are dropped, and the next tick is one period from now
    VOLT_MISSED_DELAY,
    // one result that counts the missed ticks; the ticks after it keep their phase
    VOLT_MISSED_SKIP
} volt_missed;
// A periodic timer, set by volt_interval_init. For one thread at a time.
typedef struct volt_interval {
    volt_time next_, period_;
    volt_missed missed; // may be set after volt_interval_init; default VOLT_MISSED_BURST
} volt_interval;

// ---- blocking calls and files

// The memory of one volt_blocking, in the state struct. Zero-valid; may be used again when the
// await has ended.
typedef struct volt_job {
    struct volt_job *next_, *prev_;
    struct volt__pool_thread *thread_; // the thread that will run the job, before it has begun
    void (*run_)(void *arg);           // called by a pool thread
    void (*fail_)(void *arg, int rc);  // called if the job is queued and no thread will take it
    void *arg_;
    int (*fn_)(void *);
    void *user_;
    volt_rt *rt_;
    volt__node *waiters_;
    int64_t result_;
    uint8_t lane_, state_;
} volt_job;

// The memory of one volt_blocking_detach, in the state struct. Zero-valid; may be used again when
// the await has ended, even if the function still runs.
typedef struct volt_detached_job {
    struct volt__detached_job *impl_;
} volt_detached_job;

// The memory of one volt_file_... call, in the state struct. Zero-valid; may be used again when
// the await has ended.
typedef struct volt_file_op {
    volt_job job_;
    int kind_, fd_, flags_;
    unsigned mode_, is_run_; // is_run: of a close
    unsigned waits_; // waits: the file system has no reads that do not wait
    const char *path_, *to_;
    void *buf_;
    size_t len_;
    int64_t offset_;
} volt_file_op;

// ---- streams

#ifndef VOLT_NO_STREAM
// A stream of bytes in two directions: a descriptor, a TLS connection, a script of a test. A value:
// copies of it mean the same stream. The object at `self` must outlive all of them.
typedef struct volt_stream volt_stream;
// The functions of a kind of stream. Each is polled as part of an await; one that needs a frame has
// it in *self. At most one read, and at most one of write and end, is in progress at a time; these
// two may belong to two tasks.
//   - The polls of one operation pass the same length and the same bytes, at another address maybe.
//   - An operation that has taken or given bytes returns their number, also if it is cancelled.
typedef struct volt_stream_ops {
    // as volt_read: the number of bytes, 0 at the end, or -errno
    volt_poll (*read)(volt_cx *cx, volt_stream s, void *buf, size_t len);
    // as volt_write: the number of bytes, or -errno
    volt_poll (*write)(volt_cx *cx, volt_stream s, const void *buf, size_t len);
    // No more writes will come: sends what write has taken, and tells the peer. 0 or -errno; also
    // if it is called again. NULL: does nothing
    volt_poll (*end)(volt_cx *cx, volt_stream s);
    // Waits until a read would not wait: 0 or -errno. NULL: there is no such wait
    volt_poll (*ready)(volt_cx *cx, volt_stream s);
} volt_stream_ops;
struct volt_stream {
    const volt_stream_ops *ops;
    void *self;
    int fd; // if it is above -1, the bytes of the stream are those of this descriptor
};
// Bytes in the buffer of a reader. The caller may change them.
typedef struct volt_span {
    char *data;
    size_t len;
} volt_span;
// For printf with "%.*s".
#define VOLT_SPAN(span_) (int)(span_).len, (span_).data
// The policy of a reader for a line or record that does not fit into its buffer.
enum {
    VOLT_LONG_STOP, // each call gives -EMSGSIZE from then on
    VOLT_LONG_SKIP, // one call gives -EMSGSIZE, and the next call the line or record behind it
    VOLT_LONG_CUT   // a line comes in pieces, each with the result 2; a record as with STOP
};
typedef struct volt_reader {
    volt_stream in_;
    char *buf_;
    const void *self_; // debug builds find a reader that was copied
    size_t cap_, from_, to_, scanned_, moved_;
    uint64_t skip_;    // bytes of a record that are to be dropped
    char sought_[8];   // the delimiter that was sought last, unless it is longer
    size_t n_sought_;
    uint8_t policy_, is_end_, is_skipping_, is_moving_;
} volt_reader;
// The form of a record: a header, in which a number of `width` bytes at `offset` is the length of
// the body that follows. Zeroed memory: 4 bytes, big-endian, and nothing else.
typedef struct volt_record_format {
    unsigned offset;
    unsigned width;        // 1 to 8; 0: 4
    unsigned is_little;    // 1: little-endian
    unsigned header;       // bytes of the whole header; 0: offset + width
    int64_t adjust;        // is added to the number: -4, for example, if it counts itself
    uint64_t most;         // the longest record without its header; 0: as the buffer allows
    unsigned keeps_header; // 1: the span, or the body that is put, begins with the header
} volt_record_format;
typedef struct volt_writer {
    volt_stream out_;
    char *buf_;
    const void *self_;
    size_t cap_, from_, to_, frozen_, moved_;
    int error_;
    uint8_t is_moving_;
} volt_writer;
// The state of one volt_copy. May be used again, to go on, after a cancellation.
typedef struct volt_copier {
    volt_frame frame;
    volt_stream from_, to_;
    uint64_t n_copied_, limit_;
    volt_time moved_at_;
    char *buf_;
    size_t cap_, at_, n_;     // in the buffer
    int pipe_[2];
    size_t in_pipe_;
    uint8_t is_ours_, has_no_splice_, failed_at_, has_big_pipe_;
    int64_t rc_;
} volt_copier;
typedef struct volt__relay_way {
    volt_frame frame;
    int64_t rc_;
} volt__relay_way;
// The state of one volt_relay.
typedef struct volt_relayer {
    volt_frame frame;
    volt_copier way_[2];
    volt__relay_way arm_state_[2], both_, idle_;
    volt_arm arm_[4];
    volt_time limit_;
    uint8_t is_idle_;
    int64_t rc_;
} volt_relayer;
#endif

// ---- signals and processes

#ifndef VOLT_NO_SIGNAL
typedef struct volt_signal_info {
    int number, code;
    int pid; // of the sender, with the next three, if a process has sent it
    unsigned uid;
    int value;     // of sigqueue(3): sival_int, or
    void *pointer; // sival_ptr, of this process alone
} volt_signal_info;
#endif
#ifndef VOLT_NO_PROCESS
// The standard streams of a child; a number above 0 is a descriptor of this process, of which the
// child gets a copy.
enum {
    VOLT_STDIO_INHERIT = 0, // that of this process
    VOLT_STDIO_NULL = -1,   // /dev/null
    VOLT_STDIO_PIPE = -2,   // a pipe, whose other end is in the volt_process
    VOLT_STDIO_STDOUT = -3  // for `err` alone: the same as `out`
};
typedef struct volt_fd_pair {
    int here, there; // `here` becomes the descriptor `there` of the child
} volt_fd_pair;
// Zeroed memory is the default, but for argv. It is read until volt_process_start returns.
typedef struct volt_process_options {
    const char *const *argv;         // ends with NULL; argv[0] without a / is searched in PATH
    const char *const *envp_or_null; // ends with NULL; NULL: the environment of this process
    const char *dir_or_null;         // the working directory; NULL: that of this process
    int in, out, err;
    const volt_fd_pair *fds; // further descriptors; all others that are close-on-exec are closed
    unsigned n_fds;
    unsigned is_session; // 1: leads a new session
    unsigned is_group;   // 1: leads a new process group
    unsigned ends_group; // 1: when it ends, the rest of its group gets SIGKILL; with is_group
    unsigned has_ids;    // 1: gets uid and gid, and no supplementary groups
    unsigned uid, gid;
} volt_process_options;
// The end of a process.
typedef struct volt_exit_status {
    int code;   // of exit(3), or -1
    int signal; // that has ended it, or 0
    int has_core;
} volt_exit_status;
typedef struct volt__process_waiter {
    volt_frame frame;
} volt__process_waiter;
// A child process. Zero-valid; may be used again when its end was collected. Must not be copied.
typedef struct volt_process {
    volt_frame frame;
    int pid;          // stays after the end, until the next start
    int in, out, err; // this end of each pipe, else -1; volt_process_close closes them
    int pidfd_, state_, kill_signal_;
    unsigned lock_, ends_group_;
    volt_time grace_;
    int64_t rc_;
    volt_timer limit_;
    volt_shield shield_;
    volt__process_waiter waiter_;
    volt_job job_;
    const volt_process_options *options_;
} volt_process;
// The state of one volt_capture_run. The first group of members is set by the caller.
typedef struct volt__capture_arm {
    volt_frame frame;
    int64_t rc_;
} volt__capture_arm;
typedef struct volt_capture {
    volt_frame frame;
    const void *input; // is written to stdin, unless n_input is 0
    size_t n_input;
    char *out, *err;   // room for stdout and stderr; err NULL: as .err of the options
    size_t out_cap, err_cap;
    volt_time grace;   // of volt_process_end
    size_t n_out, n_err; // results: the bytes in out and err
    volt_exit_status end;
    volt_process_options options_;
    volt_process process_;
    volt__capture_arm state_[4];
    volt_arm arm_[4];
    volt_shield shield_;
    int64_t rc_;
} volt_capture;
#endif

// ---- sockets, names, poll sets

// An entry of a directory, see volt_dir_next.
typedef struct volt_dir_entry {
    const char *name; // in the buffer
    uint64_t inode;
    int type; // DT_REG, DT_DIR ... of <dirent.h>; DT_UNKNOWN if the file system does not tell
} volt_dir_entry;

// A socket address: IPv4, IPv6 or unix.
typedef struct volt_addr {
    uint32_t len_, align_;
    unsigned char sa_[120]; // the len_ bytes of a sockaddr_in, _in6 or _un
} volt_addr;
enum { VOLT_ADDR_TEXT = 128 }; // room for the text of any address, see volt_addr_format
// The memory of one volt_resolve, in the state struct. Zero-valid.
typedef struct volt_lookup {
    struct volt__query *query_; // shared by concurrent lookups of the same name
} volt_lookup;
// The state of one volt_tcp_connect, which is an async function: a member of its caller's state.
enum { VOLT_DIAL_MAX = 8 }; // the most addresses that are tried
typedef struct volt_dial volt_dial;
typedef struct volt__dial_arm {
    volt_frame frame;
    volt_dial *dial_;
    int64_t rc_;
} volt__dial_arm;
struct volt_dial {
    volt_frame frame;
    volt_lookup lookup_;
    volt_addr addr_[VOLT_DIAL_MAX];
    volt__dial_arm attempt_[VOLT_DIAL_MAX];
    volt_time start_; // of the last attempt
    int64_t n_, rc_;
    int n_started_, n_failed_, n_failed_before_; // before: as of the start of the last attempt
};
// Options of a listener. Zeroed memory is the default, as is NULL in place of the struct.
typedef struct volt_listen_options {
    int backlog;           // of listen(2); 0: 1024
    unsigned is_reuseport; // 1: several listeners may share the port, balanced by the kernel
    unsigned is_v6only;    // 1: an IPv6 listener does not accept IPv4 connections
    unsigned is_delayed;   // 1: Nagle's algorithm stays on in accepted connections
    // of a unix socket:
    int type;              // SOCK_STREAM, SOCK_SEQPACKET; 0: SOCK_STREAM
    unsigned mode;         // of its path, 0660 for example; 0: as the umask gives it
    unsigned has_owner;    // 1: its path belongs to uid and gid
    unsigned uid, gid;
    unsigned is_replacing; // 1: removes a path first that a server has left behind
} volt_listen_options;

// Options of a UDP socket. Zeroed memory is the default, as is NULL in place of the struct.
typedef struct volt_udp_options {
    unsigned is_reuseport; // 1: several sockets may share the port, balanced by the kernel
    unsigned is_reuseaddr; // 1: several sockets may share the port of a multicast group
    unsigned is_broadcast; // 1: may send to broadcast addresses
    unsigned is_v6only;    // 1: an IPv6 socket does not receive from IPv4 addresses
    unsigned has_info;     // 1: messages carry what volt_msg_info has
    unsigned is_joined;    // 1: the kernel may join datagrams, for volt_recv_segments (UDP_GRO)
    int send_bytes, receive_bytes; // of the kernel's buffers; 0: the default of the system
    const char *device;            // all datagrams go through this interface; NULL: by the routes
} volt_udp_options;
// The properties of a datagram beside its bytes. The bits of `has` name the members that are set.
enum {
    VOLT_MSG_LOCAL = 1,      // .local: of this host, the port is 0
    VOLT_MSG_INTERFACE = 2,  // .if_index
    VOLT_MSG_TOS = 4,        // .tos: DSCP and ECN
    VOLT_MSG_TTL = 8,        // .ttl
    VOLT_MSG_SEGMENT = 16,   // .segment: bytes of each datagram of a joined message
    VOLT_MSG_INFO_IS_CUT = 32 // the room for control data was too small
};
typedef struct volt_msg_info {
    uint32_t has;
    unsigned if_index;
    volt_addr local;
    int tos, ttl;
    unsigned segment;
} volt_msg_info;
// Room for the control data of one message.
typedef union volt_msg_control {
    size_t align_;
    unsigned char bytes[256];
} volt_msg_control;
// The result of volt_recv_fds beside the data.
typedef struct volt_fds_info {
    unsigned n;          // descriptors in the array
    unsigned is_surplus; // 1: there were more, which are closed
    unsigned is_cut;     // 1: the message was longer than the buffer
} volt_fds_info;
// The process at the other end of a unix socket.
typedef struct volt_cred {
    int pid;
    unsigned uid, gid;
} volt_cred;
// The state of a terminal before volt_tty_raw.
typedef struct volt_tty {
    int fd_, is_raw_, is_exclusive_;
    unsigned long long state_[8];
} volt_tty;
// Options of a serial line. Zeroed memory is the default, as is NULL in place of the struct: 9600
// baud, 8 data bits, no parity, 1 stop bit, no flow control.
typedef struct volt_serial_options {
    unsigned baud, data_bits, stop_bits;
    char parity;            // 'N' or 0: none; 'E': even; 'O': odd
    unsigned has_rtscts;    // 1: flow control by RTS and CTS
    unsigned has_xonxoff;   // 1: flow control by XON and XOFF
    unsigned is_exclusive;  // 1: no other process may open it, and none may have locked it
} volt_serial_options;
// A system call of the program, see volt_io. Returns its result, or -errno.
typedef int64_t volt_io_fn(int fd, void *arg);

// The events of a poll set, as requested and as reported. ERR and HUP are always reported.
enum {
    VOLT_IN = 1,    // a read does not wait: there is data, a connection, or the end of the stream
    VOLT_PRI = 2,   // urgent data, or another exceptional condition of the file
    VOLT_OUT = 4,   // a write does not wait
    VOLT_ERR = 8,   // an error, which a read or SO_ERROR reports; a pipe: its reader has closed
    VOLT_HUP = 16,  // both directions have ended
    VOLT_RDHUP = 32 // the peer has shut down its writing side, or the whole connection
};
// A set of descriptors to wait for. Zeroed: not open.
typedef struct volt_pollset {
    int epfd_; // descriptor + 1; 0: not open
} volt_pollset;
typedef struct volt_pollev {
    int fd;
    uint32_t events; // VOLT_IN ...
} volt_pollev;

// ---- hooks and trace events
// Hooks may be called by any thread, but never under a lock of volt. `user` is passed to each call.

// Both functions must be set, or neither. The default maps whole pages, by mmap(2).
typedef struct volt_allocator {
    // Returns `size` bytes at a multiple of `align`, a power of two, or NULL if out of memory.
    void *(*alloc)(void *user, size_t size, size_t align);
    // `size` is that of the allocation.
    void (*free)(void *user, void *block, size_t size);
    void *user;
} volt_allocator;
// The receiver of log lines, such as volt_log_stderr. If fn is NULL, nothing is logged.
typedef struct volt_logger {
    // `item` is a volt_log_item. `text` is one line without a line feed, valid during the call.
    void (*fn)(void *user, int item, const char *text);
    void *user;
} volt_logger;
// X_(name, text): VOLT_LOG_<name>, and the text of its log lines.
#define VOLT__LOG_ITEMS(X_)                                                         \
    X_(THREAD_START, "thread not started")                                          \
    X_(STILL_ALIVE, "task still alive")                                             \
    X_(FD_REUSED, "descriptor was closed without volt_close")                       \
    X_(IGNORES_CANCEL, "task ignores -ECANCELED: a whole budget of awaits gave it") \
    X_(NEVER_WAKES, "task is pending, but no wait or waker can wake it")            \
    X_(HANDLE_LEAKED, "runtime is leaked, because handles or wakers are left")      \
    X_(SLOW_POLL, "poll took longer than .slow_poll, from this await on")           \
    X_(FRAME_NOT_ZERO, "spawn refused: the state has no frame, or one that is not zeroed")
typedef enum volt_log_item {
#define VOLT__LOG_ENUM(name_, text_) VOLT_LOG_##name_,
    VOLT__LOG_ITEMS(VOLT__LOG_ENUM)
#undef VOLT__LOG_ENUM
    VOLT_LOG_COUNT
} volt_log_item;

// Where a spawn or wake-up by a thread that is not a worker goes; see "order and placement" in
// >>manual.
typedef enum volt_placement {
    VOLT_PLACE_SHARED, // to one queue for all workers
    VOLT_PLACE_TWO,    // to a worker that sleeps, else to the less loaded of two random ones
    VOLT_PLACE_LEAST   // to a worker that sleeps, else to the least loaded of all
} volt_placement;

// The kinds of trace events, recorded with VOLT_TRACE.
typedef enum volt_trace_kind {
    VOLT_TRACE_POLL,    // a poll begins
    VOLT_TRACE_PENDING, // a poll has ended, and the task waits
    VOLT_TRACE_END,     // a poll has ended, and the task with it
    VOLT_TRACE_PARK,    // a worker goes to sleep
    VOLT_TRACE_UNPARK,  // a worker wakes up
    VOLT_TRACE_WAKE,    // a task becomes runnable: it was woken or spawned, or has yielded
    VOLT_TRACE_STEAL    // a worker has stolen `n` tasks from another one
} volt_trace_kind;
typedef struct volt_trace_event {
    // time of the event, by CLOCK_MONOTONIC
    volt_time at;
    // name of the task, as in a dump; NULL: the event is not about a task
    const char *name;
    // "file:line" of the task's last wait, in PENDING of the wait that begins; NULL: there was
    // none
    const char *site;
    // number of the task, which a dump writes as (task >> 32).(task & UINT32_MAX)
    uint64_t task;
    // a volt_trace_kind
    uint32_t kind;
    // index of the worker; UINT32_MAX: a thread that is not a worker of the runtime
    uint32_t worker;
    // STEAL: the number of tasks; WAKE and POLL: equal in a wake-up and the poll that it causes
    uint32_t n;
} volt_trace_event;
// Receives each event as it happens, on the thread on which it happens. If fn is NULL, no event is
// passed on.
typedef struct volt_tracer {
    // Must not block, nor call any function of volt but volt_now. *e is valid during the call; its
    // texts are literals of the program, or names given to volt_name.
    void (*fn)(void *user, const volt_trace_event *e);
    void *user;
} volt_tracer;

// ---- measurements

// Element i counts the durations in [2^(i-1), 2^i) ns, element 0 those below 1 ns, and the last
// element all that are longer.
enum { VOLT_HISTOGRAM = 48 };
typedef struct volt_latency_histograms {
    uint64_t poll[VOLT_HISTOGRAM]; // durations of polls
    uint64_t wait[VOLT_HISTOGRAM]; // times from a wake-up or spawn to the poll
} volt_latency_histograms;
typedef struct volt_health_report {
    // the longest time that a runnable task has been waiting for a worker, in ns, modulo 35
    // minutes. 0: no task is waiting
    volt_time oldest_runnable;
    // the longest time that a poll has been running, in ns. 0: no poll is running
    volt_time longest_poll;
    // "file:line" of the await from which that poll resumed. NULL: it is the first of its task, or
    // no poll is running
    const char *site;
} volt_health_report;

// ---- configuration

// The configuration of a runtime. Zeroed memory gives the defaults, as does NULL in place of the
// struct; a value out of range gives -EINVAL. volt_effective_config returns the values in force.
typedef struct volt_config {
    // sizeof(volt_config) as the caller was compiled; a smaller one, of an older header or of a
    // binding, leaves the later fields at their defaults. 0 means that of the implementation
    uint32_t size;
    // number of workers, at most 1024. 0 means the CPUs in the affinity mask of the calling
    // thread, or fewer if the CPU quota of the cgroup is lower
    uint32_t workers;
    // number of epoll instances over which descriptors are spread, at most and by default (0)
    // `workers`
    uint32_t reactors;
    // number of leaves that may complete in one poll before the task must yield, at most 65535. 0
    // means 128
    uint32_t budget;
    // most polls of a worker between two checks for events and timers, at most 1000000. 0 means
    // 255
    uint32_t event_interval;
    // bytes of stack of each worker thread and pool thread, at least 65536. 0 means 262144
    uint32_t stack_size;
    // period of the watchdog that finds stuck workers, in us, at least 100. 0 means 750, UINT32_MAX
    // no watchdog: tasks at a worker then may wait until a poll that blocks it has ended
    uint32_t watchdog_us;
    // 1: all workers start with the runtime. 0: only one besides worker 0, the others when there
    // is work for them
    uint32_t start_all_workers;
    // 1: worker 0 has no thread and runs inside volt_rt_step. Only for volt_create
    uint32_t is_guest;
    // where spawns and wake-ups by threads that are not workers go. 0 means VOLT_PLACE_SHARED
    volt_placement placement;
    // most pool threads that run functions of volt_blocking, volt_blocking_detach and
    // volt_file_... at once; a detached function that still runs counts. 0 means 16
    uint32_t max_blocking_threads;
    // seed of the random numbers of stealing, select and placement. 0 means a random one
    uint64_t seed;
    // volt_run: how long it waits for the tasks after worker 0 has seen the shutdown, in ns. 0
    // means no limit
    volt_time drain_timeout;
    // with VOLT_TRACE: polls that take longer are logged, in ns. 0 means none
    volt_time slow_poll;
    volt_allocator alloc;
    volt_logger log;
    // with VOLT_TRACE
    volt_tracer tracer;
} volt_config;

// ---- counters

// X_(name, meaning): the counters, which are totals over all workers since the start. Each worker
// publishes its share when it parks, and while it works at each 16th event poll; the share of the
// calling worker is exact.
#define VOLT__COUNTERS(X_)                                               \
    X_(spawned, "tasks accepted")                                        \
    X_(completed, "tasks ended")                                         \
    X_(polls, "calls of task functions")                                 \
    X_(lifo_polls, "of these, from the LIFO slot")                       \
    X_(wakes_local, "wake-ups by running tasks, queued on their worker") \
    X_(wakes_remote, "tasks fetched from the shared queue")              \
    X_(inbox_tasks, "spawns and wake-ups fetched from the own inbox")    \
    X_(steals, "successful steals")                                      \
    X_(stolen, "tasks stolen")                                           \
    X_(overflows, "full rings, of which half went elsewhere")                \
    X_(searches, "times a worker went looking for work")                 \
    X_(parks, "blocking epoll_wait calls")                               \
    X_(unparks, "sleeping workers woken through their eventfd")          \
    X_(spurious_unparks, "wake-ups that found no work")                  \
    X_(events, "descriptor events")                                      \
    X_(timers_fired, "timers that expired")                              \
    X_(watchdog_scans, "scans by the watchdog")                          \
    X_(rescued, "tasks taken from stuck workers")                        \
    X_(event_polls, "passes over descriptors and timers")                \
    X_(handoffs, "workers offered to another thread by volt_block_in_place") \
    X_(busy_ns, "time awake, in ns")
typedef struct volt_counters {
#define VOLT__COUNTER_FIELD(name_, text_) uint64_t name_;
    VOLT__COUNTERS(VOLT__COUNTER_FIELD)
#undef VOLT__COUNTER_FIELD
    // number of workers as configured; number that have been started
    uint64_t workers, workers_started;
    // runnable tasks that wait for a worker now
    uint64_t queued;
    // the thread pool now: its threads, idle threads and queued calls; calls begun since the start
    uint64_t blocking_threads, blocking_idle, blocking_queued, blocking_jobs;
} volt_counters;

//==================================================================================================
// >>await  VOLT_BEGIN, VOLT_AWAIT, VOLT_END, arms
//==================================================================================================
// The macros of async functions and awaits, with their inline functions. Names with two
// underscores are private. For use:
//   VOLT_BEGIN(cx, s)          begins an async function. `s` points to its state struct
//   VOLT_AWAIT(poll)           waits until the poll is ready
//   VOLT_AWAIT(x, poll)        the same, and assigns the result to x
//   VOLT_RETURN(rc)            ends the function with the result rc
//   VOLT_END(rc)               the same, as the last statement of the function
//   VOLT_ARM, VOLT_SELECT ...  waits for several polls in one await
//   volt_within, volt_before   limits the time of an inner poll
//   volt_with_token            cancels an inner poll when a token is cancelled
//   volt_ready, volt_pending   the results of a hand-written poll function
// VOLT_BEGIN opens a `switch` over the line at which the function has stopped, and each await is a
// `case` of it. The frame stores that line. So only the state survives an await, which is the
// reason for most of the eight rules in >>manual. All of this is used inside a task, except
// volt_result, volt_progress, volt_timer_fired and the functions on a volt_poll, which any thread
// may call.

// A poll that is ready with this result. -4096 is not a result.
static inline volt_poll volt_ready(int64_t value) {
    volt_poll p;
    p.v_ = value;
    return p;
}
// A poll that is not ready: it is repeated when a waker or a leaf wakes the task.
static inline volt_poll volt_pending(void) { return volt_ready(VOLT__PENDING); }
// Returns 1 if the poll must be repeated, 0 if it is ready.
static inline int volt_is_pending(volt_poll p) { return p.v_ == VOLT__PENDING; }
// The result of a poll, which must be ready.
static inline int64_t volt_value(volt_poll p) { return p.v_; }

// Reports misuse and stops the program, in every build.
VOLT_API void volt__misuse(const char *site, const char *what) __attribute__((noreturn, cold));
// The same, with a line of the task that is being polled in place of `site`.
VOLT_API void volt__misuse_cx(const volt_cx *cx, const char *what) __attribute__((noreturn, cold));
#define VOLT__REQUIRE(c_, what_) ((c_) ? (void)0 : volt__misuse(VOLT__SITE, what_))
#define VOLT__REQUIRE_CX(cx_, c_, what_) ((c_) ? (void)0 : volt__misuse_cx((cx_), what_))
#if VOLT_DEBUG
#  define VOLT__EXPECT(c_, what_) VOLT__REQUIRE(c_, what_)
#  define VOLT__EXPECT_CX(cx_, c_, what_) VOLT__REQUIRE_CX(cx_, c_, what_)
#  define VOLT__DEBUG_DO(stmt_) ((void)(stmt_))
// A label of 64 bits does not fit into the `switch` of an application: the compiler rejects an
// await there, and gcc's message names this macro.
#  define VOLT__NO_AWAIT_IN_SWITCH_PC(n_) ((uint64_t)1 << 32 | (uint64_t)(n_))
#  define VOLT__BAD_RESUME(version_) volt__bad_resume_with_VOLT_DEBUG_1_##version_
#else
#  define VOLT__EXPECT(c_, what_) ((void)0)
#  define VOLT__EXPECT_CX(cx_, c_, what_) ((void)(cx_))
#  define VOLT__DEBUG_DO(stmt_) ((void)0)
#  define VOLT__NO_AWAIT_IN_SWITCH_PC(n_) (n_)
#  define VOLT__BAD_RESUME(version_) volt__bad_resume_with_VOLT_DEBUG_0_##version_
#endif
#define VOLT__BAD_RESUME_OF(version_) VOLT__BAD_RESUME(version_)
// The name contains VOLT_DEBUG and the version, so that the linker rejects files that disagree.
#define volt__bad_resume VOLT__BAD_RESUME_OF(VOLT_VERSION)
VOLT_API volt_poll volt__bad_resume(const char *site, const volt_frame *frame);
#if defined(__has_attribute)
#  if __has_attribute(error)
__attribute__((error("`break` outside a loop leaves VOLT_BEGIN..VOLT_END: VOLT_RETURN or goto")))
#  endif
#endif
VOLT_API volt_poll volt__stray_break(void);

#define VOLT__DONE UINT32_MAX // resume_line_ of a frame whose function has returned
#define VOLT__WAITER_IS_SCOPE ((uintptr_t)2) // tag in waiter_: it points to a volt__scope
// kind_ of a frame: FRESH before the first poll of an await, then the kind of that await.
enum { VOLT__FRESH, VOLT__CHILD, VOLT__CHILD_ARRAY, VOLT__ARMS, VOLT__YIELD, VOLT__LEAF };
#define VOLT__REQUEUE ((uint32_t)1 << 31) // in wait_: the task yields, and is queued again

VOLT_API void volt__scope_enter(volt_cx *cx, volt__node *frame) __attribute__((cold));
VOLT_API void volt__scope_leave(volt_cx *cx, volt__node *frame) __attribute__((cold));
VOLT_API VOLT_POLL volt__yield(volt_cx *cx) __attribute__((cold)); // a cancelled one, or misuse
VOLT_API void volt__check_root(const volt_cx *cx, const volt__node *frame, size_t size);
VOLT_API void volt__check_child(const volt_cx *cx, const volt__node *frame);

// Makes `frame` the current one. Returns the frame of the caller, or NULL for the function of a
// task. The first poll of an await finds the frame of the caller FRESH: the child then starts
// over.
static inline volt__node *volt__frame_enter(volt_cx *cx, volt__node *frame, size_t size) {
    volt__node *parent = cx->frame_;
    VOLT__EXPECT_CX(cx, cx->is_awaiting_,
                    "async function called outside VOLT_AWAIT, after this line");
    VOLT__EXPECT_CX(cx, parent != frame, "async function awaited with the frame of its caller");
    VOLT__DEBUG_DO(cx->is_awaiting_ = 0);
    if (!parent) {
        VOLT__DEBUG_DO((volt__check_root(cx, frame, size), 0));
        (void)size;
    } else if (parent->kind_ == VOLT__FRESH) {
        VOLT__DEBUG_DO((volt__check_child(cx, frame), 0));
        parent->kind_ = VOLT__CHILD;
        parent->source_ = frame;
        frame->resume_line_ = 0;
        frame->state_ = 0;
        frame->kind_ = VOLT__FRESH;
        frame->waiter_ = NULL;
    } else {
        VOLT__REQUIRE_CX(cx, parent->kind_ == VOLT__CHILD_ARRAY || parent->source_ == (void *)frame,
                         "two polls in one await: use VOLT_ARM");
    }
    if ((uintptr_t)frame->waiter_ & VOLT__WAITER_IS_SCOPE) volt__scope_enter(cx, frame);
    cx->frame_ = frame;
    return parent;
}

static inline volt_poll volt__frame_finish(volt_cx *cx, volt__node *frame, volt__node *parent,
                                           int64_t value) {
    VOLT__EXPECT_CX(cx, value != VOLT__PENDING, "the result -4096 is reserved, after this line");
    VOLT__EXPECT_CX(cx, frame->state_ == 0, "function returned with its own wait still pending");
    if ((uintptr_t)frame->waiter_ & VOLT__WAITER_IS_SCOPE) volt__scope_leave(cx, frame);
    frame->resume_line_ = VOLT__DONE;
    frame->key_.result_ = value;
    if (parent) {
        cx->frame_ = parent;
        if (parent->kind_ == VOLT__CHILD) parent->kind_ = VOLT__FRESH;
    }
    return volt_ready(value);
}

// Stores the line of an await. Called before the inner poll is evaluated.
static inline void volt__set_resume_line(volt__node *frame, uint32_t line) {
    frame->resume_line_ = line;
}
// Ends a poll that is pending. Leaves *cx as this poll has changed it: an await that polls another
// branch restores it. site_ becomes that of the innermost await, or of the one with several
// branches.
static inline volt_poll volt__suspend(volt_cx *cx, const volt__node *frame, const char *site) {
    if (frame->kind_ != VOLT__CHILD) cx->site_ = site;
    return volt_pending();
}

// Begins an async function: `s` points to its state, whose first member is `volt_frame frame`.
// Hides volt_ready and volt_pending, because `return volt_ready(x)` would skip the work of
// VOLT_RETURN.
#define VOLT_BEGIN(cx_, s_)                                                                        \
    VOLT__SASSERT(offsetof(__typeof__(*(s_)), frame) == 0,                                         \
                  "`volt_frame frame` must be the first member");                                  \
    __attribute__((unused)) const char volt_ready = 0, volt_pending = 0;                           \
    volt_cx *const volt__cx = (cx_);                                                               \
    volt_frame *const volt__frame = &(s_)->frame;                                                  \
    volt__node *const volt__parent = volt__frame_enter(volt__cx, &volt__frame->node_,              \
                                                       sizeof *(s_));                              \
    VOLT__DEBUG_DO(volt__cx->at_ = VOLT__SITE);                                                    \
    switch (VOLT__NO_AWAIT_IN_SWITCH_PC(volt__frame->node_.resume_line_)) {                        \
    default: return volt__bad_resume(VOLT__SITE, volt__frame);                                     \
    case VOLT__NO_AWAIT_IN_SWITCH_PC(0):

// The only ways to end an async function. VOLT_END returns inside the `switch`, so that only a
// stray `break` reaches the code behind it.
#define VOLT_RETURN(rc_)                                                                           \
    return volt__frame_finish(volt__cx, &volt__frame->node_, volt__parent, (rc_))
#define VOLT_END(rc_)                                                                              \
    return volt__frame_finish(volt__cx, &volt__frame->node_, volt__parent, (rc_));                 \
    }                                                                                              \
    return volt__stray_break()

#define VOLT__AT(is_awaiting_now_)                                                                 \
    VOLT__DEBUG_DO((volt__cx->is_awaiting_ = (is_awaiting_now_), volt__cx->at_ = VOLT__SITE))
// gcc reports a local that an await loses (-Wjump-misses-init) at the token `case`, but reports
// nothing at a token that comes from a system header, such as volt.h in /usr/include or behind
// -isystem. pop_macro defines the token again, so that it belongs to the line of the await. Its
// name is part of gcc's message about an await inside a `switch` of the application.
#define VOLT__NO_AWAIT_IN_SWITCH case
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
#  define VOLT__CASE_HERE                              \
      _Pragma("push_macro(\"VOLT__NO_AWAIT_IN_SWITCH\")") \
      _Pragma("pop_macro(\"VOLT__NO_AWAIT_IN_SWITCH\")")
#else
#  define VOLT__CASE_HERE
#endif
// A label that only serves the compiler's message: two awaits on one line would define it twice.
#define VOLT__ONE_AWAIT2(line_) volt__one_await_to_a_line_##line_
#define VOLT__ONE_AWAIT(line_) VOLT__ONE_AWAIT2(line_)
#define VOLT__POLL(e_)                                                                             \
    VOLT__ONE_AWAIT(__LINE__) : __attribute__((unused));                                           \
    volt__set_resume_line(&volt__frame->node_, __LINE__);                                          \
    VOLT__FALLTHROUGH;                                                                             \
    VOLT__CASE_HERE                                                                                \
    VOLT__NO_AWAIT_IN_SWITCH VOLT__NO_AWAIT_IN_SWITCH_PC(__LINE__): {                              \
        const volt_poll volt__p = (VOLT__AT(1), (e_));                                             \
        VOLT__AT(0);                                                                               \
        if (volt_is_pending(volt__p))                                                              \
            return volt__suspend(volt__cx, &volt__frame->node_, VOLT__SITE);                       \
        VOLT__EXPECT(volt__cx->frame_ == &volt__frame->node_,                                      \
                     "a child returned without VOLT_RETURN or VOLT_END");
#define VOLT__AWAIT1(e_)                                                                           \
    do {                                                                                           \
        VOLT__POLL(e_)                                                                             \
        }                                                                                          \
    } while (0)
#define VOLT__AWAIT2(lhs_, e_)                                                                     \
    do {                                                                                           \
        VOLT__POLL(e_)                                                                             \
        (lhs_) = (__typeof__(lhs_))volt__p.v_;                                                     \
        VOLT__EXPECT((int64_t)(lhs_) == volt__p.v_, "result does not fit its destination");        \
        }                                                                                          \
    } while (0)
#define VOLT__PICK2(a_, b_, n_, ...) n_
// VOLT_AWAIT(poll) or VOLT_AWAIT(destination, poll): waits until the poll is ready. The destination
// receives the result, which is dropped without one; a debug build stops if it does not fit.
#define VOLT_AWAIT(...) VOLT__PICK2(__VA_ARGS__, VOLT__AWAIT2, VOLT__AWAIT1, 0)(__VA_ARGS__)

// The result of an awaited async function, given its frame: the number that its await gave. If the
// function has not ended, the program stops.
#define volt_result(f_) volt__result((f_), VOLT__SITE)
static inline int64_t volt__result(const volt_frame *f, const char *site) {
    if (f->node_.resume_line_ != VOLT__DONE)
        volt__misuse(site, "volt_result: the function of this frame has not ended");
    return f->node_.key_.result_;
}
// The number of bytes that a failed volt_read_exact or volt_write_all has moved, given the frame of
// the function that awaited it; valid until its next await. If the operation was an arm itself, its
// count is lost: await it in a function of its own, and make that function the arm.
static inline int64_t volt_progress(const volt_frame *f) { return f->node_.key_.moved_; }

// ---- several polls in one await
// Arms are joined by the comma operator. They cannot be arguments of a call, because C may
// interleave the evaluation of arguments, and each arm must set cx->frame_ before its poll is
// evaluated.
enum { VOLT__SELECT, VOLT__SELECT_BIASED, VOLT__JOIN_ALL, VOLT__TRY_JOIN_ALL };
// A type of its own, so that a bare poll is not accepted as an arm.
typedef struct volt__arm_status {
    int fired_;
} volt__arm_status;
VOLT_API void volt__arms_begin(volt_cx *cx, int mode);
VOLT_API int volt__arm_poll_begin(volt_cx *cx, volt_arm *arm);
VOLT_API int volt__arm_poll_end(volt_cx *cx, volt_arm *arm, volt_poll p);
VOLT_API int volt__arms_next_pass(volt_cx *cx, volt__arm_status last);
VOLT_API VOLT_POLL volt__arms_end(volt_cx *cx, int done);
static inline volt__arm_status volt__arm_done(int fired) {
    volt__arm_status a;
    a.fired_ = fired;
    return a;
}
#define VOLT__ARM_POLL(arm_, e_)                                                                   \
    (volt__arm_poll_begin(volt__cx, (arm_)) && volt__arm_poll_end(volt__cx, (arm_), (e_)))
#define VOLT__ARM2(arm_, e_) volt__arm_done(VOLT__ARM_POLL(arm_, e_))
#define VOLT__ARM3(arm_, lhs_, e_)                                                                 \
    volt__arm_done(VOLT__ARM_POLL(arm_, e_) && ((lhs_) = (__typeof__(lhs_))(arm_)->value, 1))
#define VOLT__PICK3(a_, b_, c_, n_, ...) n_
// One branch: VOLT_ARM(&arm, poll) or VOLT_ARM(&arm, destination, poll). The arm is a volt_arm of
// the state. The destination is written if and only if the arm has fired.
#define VOLT_ARM(...) VOLT__PICK3(__VA_ARGS__, VOLT__ARM3, VOLT__ARM2, 0, 0)(__VA_ARGS__)
#define VOLT__ARMS(mode_, ...)                                                                     \
    volt__arms_end(volt__cx, __extension__({                                                       \
                       volt__arms_begin(volt__cx, mode_);                                          \
                       while (volt__arms_next_pass(volt__cx, (__VA_ARGS__))) {}                    \
                       0;                                                                          \
                   }))
// Waits until one arm is ready, the winner; then cancels the others and waits until they have
// ended. A losing arm that could not be undone, such as a volt_file_open, has its result in
// `value`. In a cancelled scope an arm that still completes, for example under a shield, wins as
// well. At most 200 arms. The order of polling decides among arms that are ready at the same time:
// VOLT_SELECT polls up to 8 arms in random order, so that each is equally likely to win, and more
// arms in textual order, beginning at a random one. VOLT_SELECT_BIASED polls in textual order.
//   returns: index of the winner, from 0 | -ECANCELED if the scope was cancelled: no arm has fired
#define VOLT_SELECT(...) VOLT__ARMS(VOLT__SELECT, __VA_ARGS__)
#define VOLT_SELECT_BIASED(...) VOLT__ARMS(VOLT__SELECT_BIASED, __VA_ARGS__)
// Waits for all arms. Their results are in `value` of each volt_arm.
//   returns: 0 | -ECANCELED if the scope was cancelled: all arms have ended nevertheless
#define VOLT_JOIN_ALL(...) VOLT__ARMS(VOLT__JOIN_ALL, __VA_ARGS__)
// Waits for all arms. The first negative result cancels the others.
//   returns: 0 | the first negative result | -ECANCELED if the scope was cancelled
#define VOLT_TRY_JOIN_ALL(...) VOLT__ARMS(VOLT__TRY_JOIN_ALL, __VA_ARGS__)

// ---- time limits and tokens around a poll
// These are macros, because an ordinary function would be called after its inner poll, too late to
// cancel it. The inner poll may be any poll, also that of an async function. None allocates: the
// timer or link is a member of the state. For example, with `volt_timer limit` in *s:
//     VOLT_AWAIT(s->n, volt_within(cx, &s->limit, VOLT_S(5), volt_read(cx, s->fd, s->buf, 64)));
VOLT_API void volt__within_begin(volt_cx *cx, volt_timer *t);
VOLT_API VOLT_POLL volt__within_end(volt_cx *cx, volt_timer *t, volt_time at_most, volt_poll inner);
VOLT_API VOLT_POLL volt__before_end(volt_cx *cx, volt_timer *t, volt_time deadline,
                                    volt_poll inner);
VOLT_API void volt__with_token_begin(volt_cx *cx, volt_token_link *l, volt_token *token);
VOLT_API VOLT_POLL volt__with_token_end(volt_cx *cx, volt_token_link *l, volt_token *token,
                                        volt_poll inner);
// Limits the time of the inner poll. `at_most` is in ns and counts from the first poll of this
// await; VOLT_NEVER: no limit. When the time is up, the inner poll is tried once more, and its
// result counts if it completes. Otherwise it is cancelled.
//   returns: the result of the inner poll | -ETIMEDOUT if the limit has cancelled it and it has
//            ended with -ECANCELED
//   wakes  : when the inner poll can go on, or when the time is up, rounded up to 1/16 ms
#define volt_within(cx_, t_, at_most_, inner_)                                                     \
    volt__within_end((cx_), (t_), (at_most_), (volt__within_begin((cx_), (t_)), (inner_)))
// The same with an absolute time of CLOCK_MONOTONIC, see volt_now.
#define volt_before(cx_, t_, deadline_, inner_)                                                    \
    volt__before_end((cx_), (t_), (deadline_), (volt__within_begin((cx_), (t_)), (inner_)))
// Returns 1 if the last await with this timer gave -ETIMEDOUT because of its limit, else 0: a
// -ETIMEDOUT was then the result of the inner poll.
static inline int volt_timer_fired(const volt_timer *t) { return t->node_.key_.was_timeout_ == 1; }
// Cancels the inner poll when the token is cancelled, and does not try it once more before that.
//   returns: the result of the inner poll, usually -ECANCELED once the token is cancelled
//   wakes  : when the inner poll can go on, or when the token is cancelled
#define volt_with_token(cx_, l_, stop_, inner_)                                                    \
    volt__with_token_end((cx_), (l_), (stop_),                                                 \
                         (volt__with_token_begin((cx_), (l_), (stop_)), (inner_)))

//==================================================================================================
// >>api  every function with its contract
//==================================================================================================
// The public functions, each with its contract: the effect of the function, then
//   where  : the thread that may call it; the terms are explained in >>manual, "threads"
//   returns: its results, separated by |. A negative one is -errno
//   wakes  : when a wait ends, if that is not obvious
//   memory : its allocations, and the owner of the memory that it uses
//   Order  : which earlier writes a caller sees after it has returned
// Not repeated below:
//   - A function with a volt_cx is called inside a task, a `_sync` function on a plain thread, and
//     any other function by any thread, unless `where` says otherwise.
//   - Each VOLT_POLL is awaited. Except for volt_group_close it also returns -ECANCELED if its
//     scope is cancelled. One on a descriptor also returns -EBADF, -ENOMEM, -ENOSPC (the limit of
//     epoll) and the errors that the kernel has for such a file.
//   - A function allocates only if `memory` says so.
//   - Objects, buffers and strings that are passed to a wait belong to the caller and must exist
//     until the wait has ended, so they are members of the state or outlive the task.
//   - A volt_time is in ns. `at_most` is a duration: one below 0 counts as 0, VOLT_NEVER means no
//     limit. A deadline is an absolute time of volt_now.
//   - A pointer may be NULL only if its contract or its name says so. `arg` and `user` may be NULL.

// ---- runtime

// Runs `fn` as the root task. The calling thread is worker 0. Returns when the root task has ended,
// and all tasks that it left were cancelled and have ended. config_or_null NULL: the defaults.
//   where  : plain thread. A pthread_cancel of this thread takes effect after the return
//   returns: the result of the root task, clamped to an int | -EINVAL: invalid configuration,
//            .is_guest, or frame not zeroed | -ENOMEM, -EMFILE, -ENFILE, -ENODEV, -ENOSPC, or the
//            error of a seccomp filter, at the start | -EDEADLK on a worker | -ETIMEDOUT if tasks,
//            detached calls or abandoned lookups still run after .drain_timeout, which counts from
//            the moment when worker 0 sees the shutdown
//   memory : allocates the runtime and frees it. If a handle or waker is still held, the runtime
//            is leaked, which is logged. `state` remains the caller's. After -ETIMEDOUT the
//            runtime is leaked, and tasks still use it and `state`
VOLT_API int volt_run(const volt_config *config_or_null, volt_fn *fn, void *state);
// Starts a runtime. Each worker has a thread of its own, except worker 0 of a guest.
//   where  : any thread
//   returns: 0 | the errors of volt_run at its start | -EAGAIN if no thread could be started. A
//            further thread that cannot be started is logged, and is no error
//   memory : allocates. *out is the caller's until volt_destroy returns 0; NULL after an error
VOLT_API int volt_create(const volt_config *config_or_null, volt_rt **out);
// Runs `fn` as a task of the runtime, and blocks the calling thread until the task has ended.
//   where  : plain thread; several at once are legal. Not the thread that makes the steps of a
//            guest
//   returns: the result of the task, clamped to an int | -EDEADLK on a worker | -ESHUTDOWN |
//            -ENOMEM | -EINVAL: frame not zeroed | -ECHILD in a forked child
//   memory : one slot. `state` remains the caller's
VOLT_API int volt_block_on(volt_rt *rt, volt_fn *fn, void *state);
// Refuses new tasks, cancels all tasks, and waits until they have ended. May be called again. For
// a guest it makes the steps itself, whenever no other thread is inside one.
//   where  : any thread. On a worker, of any runtime, it only begins the shutdown
//   returns: 0 | after `at_most`, the number of tasks that have not ended; the first 16 are logged
//            with file:line. If all have ended, the number of detached calls and abandoned lookups
//            that still run | -EINPROGRESS on a worker | -ECHILD in a forked child
VOLT_API int volt_shutdown(volt_rt *rt, volt_time at_most);
// Frees the runtime. Waits for threads that are about to leave a call on it.
//   where  : any thread, after volt_shutdown has returned 0
//   returns: 0 | -EBUSY if the shutdown is not complete, a thread is inside volt_rt_step, or a
//            handle or waker of a task is held | -ECHILD in a forked child
VOLT_API int volt_destroy(volt_rt *rt);
// The descriptor of a guest. A runtime with .is_guest has no thread for worker 0: the application
// adds this descriptor to its event loop, and calls volt_rt_step whenever the descriptor is
// readable, which it is if a task or a timer is due. It is an epoll instance, and may be waited on,
// for reading only, by poll(2), select(2) or another epoll.
//   where  : any thread
//   returns: the descriptor, which the runtime closes | -EINVAL without .is_guest
VOLT_API int volt_rt_fd(const volt_rt *rt);
// Makes one step of a guest: runs runnable tasks, for at most max_polls polls, and never blocks.
// max_polls 0: runs until no task is runnable, which never happens if a task always yields. The
// descriptor stays readable while more is due.
//   where  : plain thread; one thread at a time, not always the same
//   returns: the number of polls | -ESHUTDOWN if all tasks have ended in a shutdown | -EBUSY if
//            another thread is inside | -EDEADLK on a worker | -EINVAL without .is_guest | -ECHILD
//            in a forked child
VOLT_API int volt_rt_step(volt_rt *rt, uint32_t max_polls);
// The time of the next step, for event loops that wait with a time limit in place of the
// descriptor: the earliest deadline of the guest, or an earlier time if that is far away.
//   where  : any thread, but not while a thread is inside volt_rt_step
//   returns: an absolute time | 0 if a step is due now | VOLT_NEVER if no timer is set, without
//            .is_guest, or in a forked child
VOLT_API volt_time volt_rt_deadline(volt_rt *rt);
// The configuration with every default filled in. Writes the whole struct, of the size that it has
// in the implementation, regardless of out->size.
//   where  : any thread
VOLT_API void volt_effective_config(const volt_rt *rt, volt_config *out);
// The runtime that runs this task.
VOLT_API volt_rt *volt_cx_rt(const volt_cx *cx);
// The counters of the runtime; all 0 in a forked child.
//   where  : any thread
VOLT_API void volt_stats(volt_rt *rt, volt_counters *out);
// The counters of one worker, with an index from 0 on. Those that do not belong to a worker are 0.
//   where  : any thread
//   returns: 0 | -ENOENT if no such worker has been started | -ECHILD in a forked child
VOLT_API int volt_worker_stats(volt_rt *rt, uint32_t worker, volt_counters *out);
// Writes the state of every worker, and of every task with the object that it waits for, as text
// or as JSON, to a descriptor. Tasks run on during the dump: each entry shows its task at one
// moment, but two entries may differ in time. flags: 0, or a sum of the constants below.
//   where  : any thread. With VOLT_DUMP_CRASH also a signal handler: the dump then waits for no
//            lock
//   returns: 0 | -errno of write(2); SIGPIPE is suppressed | -EAGAIN if `fd` is non-blocking and
//            has taken nothing for a second | -EBUSY if a lock is held, with VOLT_DUMP_CRASH; then
//            tasks are missing | -ECHILD in a forked child
enum { VOLT_DUMP_JSON = 1, VOLT_DUMP_CRASH = 2 };
VOLT_API int volt_dump(volt_rt *rt, int fd, unsigned flags);
// The same to a function, which receives up to 1024 bytes at a time and ends the output by a
// negative result. With VOLT_DUMP_CRASH it must be safe in a signal handler.
//   returns: as volt_dump, with the negative result of `put` in place of -errno of write(2)
VOLT_API int volt_dump_to(volt_rt *rt, int (*put)(void *user, const char *text, size_t len),
                          void *user, unsigned flags);
// Sets the name of the calling task in dumps and traces, in place of its function and spawn site.
// NULL: no change.
//   memory : `name` must exist as long as the runtime, as a literal does
VOLT_API void volt_name(volt_cx *cx, const char *name);
// Writes the last events of every worker in Chrome's JSON format, for ui.perfetto.dev: a track per
// worker with polls, sleeps and steals, and arrows from wake-ups to polls. volt_trace writes to a
// descriptor, volt_trace_to passes the text to a function, as volt_dump_to does.
//   where  : any thread
//   returns: 0 | the negative result of `put`, or the errors of volt_dump for `fd` | -ENOMEM |
//            -ECHILD in a forked child | -ENOSYS without VOLT_TRACE
//   memory : allocates a copy of the events of one worker, and frees it
VOLT_API int volt_trace_to(volt_rt *rt, int (*put)(void *user, const char *text, size_t len),
                           void *user);
VOLT_API int volt_trace(volt_rt *rt, int fd);
// Histograms of the durations of polls and of waits for a worker: totals over all workers.
//   where  : any thread
//   returns: 0 | -ECHILD in a forked child | -ENOSYS without VOLT_TRACE
VOLT_API int volt_histograms(volt_rt *rt, volt_latency_histograms *out);
// Reports whether a poll or a runnable task is stuck. Visits each task and worker, so it is meant
// for a periodic check.
//   where  : any thread
//   returns: 0 | -ECHILD in a forked child | -ENOSYS without VOLT_TRACE
VOLT_API int volt_health(volt_rt *rt, volt_health_report *out);
// A function for .log: writes one line to standard error. `user` and `item` are not used. If
// standard error is closed, it does nothing.
//   where  : any thread
VOLT_API void volt_log_stderr(void *user, int item, const char *text);
// The text of a result, with the name of its errno. Static, never NULL; "success" for rc >= 0.
//   where  : any thread
VOLT_API const char *volt_strerror(int rc);

// ---- tasks

// The largest alignment, in bytes, that the type of a task's state may have.
#define VOLT_STATE_ALIGN (sizeof(void *) == 8 ? 64 : 16)
// Starts a task with a copy of *state. *h is overwritten by a handle; h NULL: the task is detached.
// The macro VOLT_SPAWN(cx, handle_or_NULL, fn, state), whose `state` is an lvalue or a compound
// literal, also checks the type and sets `site`, the file and line that dumps and logs show.
//   where  : inside a task
//   returns: 0 | -ENOMEM, also for more than 2 GiB | -ESHUTDOWN | -EINVAL: frame not zeroed, or
//            `size` less than that of a frame. After an error there is no task, and *h is unchanged
//            or empty
//   memory : one slot, of size + 64 bytes (48 with 32-bit pointers) or somewhat more, until the
//            task has ended and no handle or waker refers to it. It is aligned as the type of the
//            state is, up to VOLT_STATE_ALIGN; a larger alignment does not compile. `site` must
//            exist as long as the runtime, as a literal does
VOLT_API VOLT__MUST int volt_spawn(volt_cx *cx, volt_handle *h, volt_fn *fn, const void *state,
                                   size_t size);
VOLT_API VOLT__MUST int volt_spawn_at(volt_cx *cx, volt_handle *h, volt_fn *fn, const void *state,
                                      size_t size, const char *site);
// The same, given the runtime. Macro: VOLT_RT_SPAWN(rt, handle_or_NULL, fn, state).
//   where  : any thread
//   returns: as volt_spawn | -ECHILD in a forked child
VOLT_API VOLT__MUST int volt_rt_spawn(volt_rt *rt, volt_handle *h, volt_fn *fn, const void *state,
                                      size_t size);
VOLT_API VOLT__MUST int volt_rt_spawn_at(volt_rt *rt, volt_handle *h, volt_fn *fn,
                                         const void *state, size_t size, const char *site);
// Starts a child of the group. Macro: VOLT_GROUP_SPAWN(cx, &group, fn, state).
//   where  : inside a task: the owner of the group, or one of its children
//   returns: as volt_spawn | -ECANCELED while the group is being closed
//   memory : as volt_spawn, and 32 bytes more. The functions do not know the type of the state:
//            they align it to 16 bytes only
VOLT_API VOLT__MUST int volt_group_spawn(volt_cx *cx, volt_group *g, volt_fn *fn, const void *state,
                                         size_t size);
VOLT_API VOLT__MUST int volt_group_spawn_at(volt_cx *cx, volt_group *g, volt_fn *fn,
                                            const void *state, size_t size, const char *site);
VOLT_API VOLT__MUST int volt__group_spawn(volt_cx *cx, volt_group *g, volt_fn *fn,
                                          const void *state, size_t size, size_t align,
                                          const char *site);
// Creates a task whose state is filled in place, which saves the copy of a large state. The task
// must be started or destroyed; a shutdown waits for that.
//   where  : any thread
//   returns: the state, zeroed, inside the slot of the task | NULL if out of memory, if `size` is
//            less than that of a frame, after a shutdown has begun, or in a forked child
//   memory : one slot, as volt_spawn
VOLT_API void *volt_task_create(volt_rt *rt, volt_fn *fn, size_t size);
// Starts a created task. This cannot fail. The task is polled at least once, even if it is
// cancelled before. The program stops if the frame is not zeroed. handle_or_null: as `h` of
// volt_spawn.
//   where  : any thread
//   memory : the task's: the caller must not use `state` any more
VOLT_API void volt_task_start(void *state, volt_handle *handle_or_null);
// Frees a created task that has not been started.
//   where  : any thread
VOLT_API void volt_task_destroy(void *state);
#ifndef __cplusplus
// These two are 0, or do not compile because of an array of negative size.
#  define VOLT__FRAME_MUST_BE_FIRST_MEMBER(...)                                                    \
      (0 * sizeof((__VA_ARGS__).frame.node_) +                                                     \
       0 * sizeof(char[offsetof(__typeof__(__VA_ARGS__), frame) ? -1 : 1]))
#  define VOLT__STATE_IS_ALIGNED_TOO_FAR(...) \
      (0 * sizeof(char[__alignof__(__typeof__(__VA_ARGS__)) > VOLT_STATE_ALIGN ? -1 : 1]))
#  define VOLT__STATE(...) \
      &(__VA_ARGS__), sizeof(__VA_ARGS__) + VOLT__FRAME_MUST_BE_FIRST_MEMBER(__VA_ARGS__) + \
                          VOLT__STATE_IS_ALIGNED_TOO_FAR(__VA_ARGS__)
#  define VOLT_SPAWN(cx_, h_, fn_, ...) \
      volt_spawn_at((cx_), (h_), (fn_), VOLT__STATE(__VA_ARGS__), VOLT__SPAWN_SITE(fn_))
#  define VOLT_RT_SPAWN(rt_, h_, fn_, ...) \
      volt_rt_spawn_at((rt_), (h_), (fn_), VOLT__STATE(__VA_ARGS__), VOLT__SPAWN_SITE(fn_))
#  define VOLT_GROUP_SPAWN(cx_, g_, fn_, ...) \
      volt__group_spawn((cx_), (g_), (fn_), VOLT__STATE(__VA_ARGS__), \
                        __alignof__(__typeof__(__VA_ARGS__)), VOLT__SPAWN_SITE(fn_))
#endif

// Waits until a task has ended. A second join of the same task at the same time stops the program.
//   where  : inside a task
//   returns: the result of the task | -EINVAL if the handle is empty. *h is cleared if and only if
//            the task has ended, which distinguishes its -ECANCELED from that of a cancelled wait;
//            after the latter the task runs on, and *h still refers to it
//   Order  : all that the task did is visible, as after every join
VOLT_API VOLT_POLL volt_join(volt_cx *cx, volt_handle *h);
// The same, and copies the first `size` bytes of the final state of the task to *state. If its
// slot has fewer, the program stops.
VOLT_API VOLT_POLL volt_join_state(volt_cx *cx, volt_handle *h, void *state, size_t size);
// Takes the result if the task has ended. result NULL: the result is dropped.
//   where  : any thread
//   returns: 0 with the result in *result, and *h cleared | -EAGAIN if the task has not ended |
//            -EINVAL if the handle is empty
VOLT_API int volt_try_join(volt_handle *h, int64_t *result);
// Blocks the thread until the task has ended, for `at_most` at most. result NULL: it is dropped.
//   where  : plain thread. Not the thread that makes the steps of a guest
//   returns: 0 with the result in *result, and *h cleared | -ETIMEDOUT | -EDEADLK on a worker |
//            -EINVAL if the handle is empty | -ECHILD in a forked child
VOLT_API int volt_join_sync(volt_handle *h, volt_time at_most, int64_t *result);
// Cancels the task: wakes it, and from its next poll on its awaits give -ECANCELED. A second call
// changes nothing, nor does a call for an empty handle or for a task that has ended.
//   where  : any thread, but not while another task or thread is inside a volt_join,
//            volt_join_state, volt_try_join, volt_join_sync or volt_detach of the same handle
VOLT_API void volt_cancel(const volt_handle *h);
// Releases and clears the handle. The task runs on. Does nothing if the handle is empty.
//   where  : any thread
VOLT_API void volt_detach(volt_handle *h);
// Returns 1 if the handle refers to a task, 0 if it is empty.
static inline int volt_handle_is_set(const volt_handle *h) { return h->task_ != NULL; }
// Lets other tasks run: the task is queued again behind all tasks of its worker. If there are none,
// one from the shared queue or inbox runs first, or else those whose event or timer is due.
//   returns: 0
static inline VOLT_POLL volt_yield(volt_cx *cx) {
    volt__node *node = cx->frame_;
    VOLT__EXPECT_CX(cx, cx->is_awaiting_, "wait called outside VOLT_AWAIT, after this line");
    if (!node || cx->shield_depth_ < cx->cancel_level_) return volt__yield(cx);
    if (node->kind_ == VOLT__YIELD) { // the second poll: the task has been in the queue
        node->kind_ = VOLT__FRESH;
        return volt_ready(0);
    }
    if (node->kind_ != VOLT__FRESH) return volt__yield(cx);
    node->kind_ = VOLT__YIELD;
    cx->wait_ |= VOLT__REQUEUE;
    return volt_pending();
}
// Ends only when it is cancelled: for the place of an arm that is switched off.
//   returns: -ECANCELED
VOLT_API VOLT_POLL volt_sleep_forever(volt_cx *cx);
// Returns 1 if the next await would give -ECANCELED, else 0: for loops without awaits, and for
// hand-written poll functions. It sees volt_cancel and a shutdown at once, but an expired time
// limit or a cancelled token only from the next poll of the task on. Not awaited.
VOLT_API int volt_is_cancelled(volt_cx *cx);
// Begins a shield: until `at_most` has passed, awaits in this frame and in the functions that it
// awaits ignore cancellation. After that they give -ECANCELED, even if nothing was cancelled. They
// are not tried once more at the deadline, so data that has come but was not read stays unread.
// VOLT_RETURN and VOLT_END end the shields of their frame. Shields may be nested.
VOLT_API void volt_shield_begin(volt_cx *cx, volt_shield *s, volt_time at_most);
// Ends the innermost shield, which must be `s`, begun in this frame; else the program stops.
VOLT_API void volt_shield_end(volt_cx *cx, volt_shield *s);
// volt_waker_retain makes a reference to the calling task, by which any thread wakes the task any
// number of times. volt_wake does nothing once the task has ended. An awaited poll function must
// tolerate spurious wake-ups.
//   where  : volt_waker_retain inside a task, the other two on any thread
//   memory : the reference keeps the slot of the task until volt_waker_release, which must be
//            called once for each retain
VOLT_API volt_waker volt_waker_retain(const volt_cx *cx);
VOLT_API void volt_wake(volt_waker w);
VOLT_API void volt_waker_release(volt_waker w);

// Joins over an array of children: volt_join_all(cx, VOLT_EACH(fn, array)), where each element is
// a state struct of the async function fn. Where only a pointer is at hand, pass fn, the pointer,
// the element size and the number. The frames are zeroed first. All children have ended when a join
// returns; the results are volt_result(&array[i].frame).
#define VOLT_EACH(fn_, array_) \
    (fn_), (array_), sizeof(array_)[0], sizeof(array_) / sizeof(array_)[0]
// Waits for all children.
//   returns: 0 | -ECANCELED if the scope was cancelled: all have ended nevertheless
VOLT_API VOLT_POLL volt_join_all(volt_cx *cx, volt_fn *fn, void *states, size_t stride, size_t n);
// Waits for all children. The first negative result cancels the others.
//   returns: 0 | the first negative result | -ECANCELED if the scope was cancelled
VOLT_API VOLT_POLL volt_try_join_all(volt_cx *cx, volt_fn *fn, void *states, size_t stride,
                                     size_t n);
// Waits for the first child to end, and cancels the others.
//   returns: index of that child | -ECANCELED if n is 0, or if the scope was cancelled and no
//            child has ended with another result
VOLT_API VOLT_POLL volt_join_any(volt_cx *cx, volt_fn *fn, void *states, size_t stride, size_t n);

// ---- blocking calls

// Runs fn(arg), which may block, on a thread of a pool. Threads start on demand and end after 10 s
// without work; at most .max_blocking_threads functions run at once, and further ones are queued.
// If the wait is cancelled before fn has begun, fn never runs. Once fn has begun, the wait lasts
// until fn returns, even if it is cancelled, so `arg` may be a member of the state. fn has a stack
// of .stack_size bytes, and must not wait for the end of its own task. Under VOLT_SINGLE_THREAD fn
// is called inside the poll.
//   returns: the result of fn | -EAGAIN if no thread could be started and none is running |
//            -ENOMEM | -ECANCELED: fn has not run
//   memory : allocates about 100 bytes and a stack per thread
VOLT_API VOLT_POLL volt_blocking(volt_cx *cx, volt_job *job, int (*fn)(void *arg), void *arg);
// The same for a function that may hang. If the wait is cancelled, it ends at once; if fn has
// begun by then, it runs on, and counts among .max_blocking_threads until it returns. After
// -ECANCELED `arg` is no longer the caller's: drop(arg) is called once, during this poll or, if fn
// has begun, by the pool thread after fn has returned. drop NULL: no call. After any other result
// `arg` is still the caller's. So `arg` must not be a member of the state, and fn must not return
// -ECANCELED. volt_shutdown waits for fn until its time limit, volt_run until .drain_timeout has
// passed.
//   returns: as volt_blocking
//   memory : allocates about 150 bytes until fn has returned, and a thread as volt_blocking
VOLT_API VOLT_POLL volt_blocking_detach(volt_cx *cx, volt_detached_job *job, int (*fn)(void *arg),
                                        void *arg, void (*drop)(void *arg));
// Calls fn(arg), which may block, on this thread, in the middle of the poll. Another thread takes
// over the worker until fn has returned, so that no other task has to wait. During fn the thread
// counts as a plain thread: fn may call the functions for plain threads, has no volt_cx, and must
// not wait for the end of its own task, as volt_shutdown without a time limit would. If no thread
// can be started, fn is called nevertheless, and the queued tasks move to other workers.
//
// In three cases the thread still counts as a worker, so that calls that wait for tasks return
// -EDEADLK: in worker 0 of a guest; under VOLT_SINGLE_THREAD; and if no thread can be started and
// all other workers block in the same way.
//   where  : inside a task; not awaited
//   returns: the result of fn
//   memory : as volt_blocking
VOLT_API int volt_block_in_place(volt_cx *cx, int (*fn)(void *arg), void *arg);

#ifndef VOLT_NO_FILES
// ---- files
// Each operation is one volt_blocking call, and returns its errors, too. Further errors are -errno
// of the system call, -EINVAL for a buffer of more than 1 GiB, -EOVERFLOW for an offset beyond the
// off_t of the C library, and -EFAULT if a path is NULL.

// Opens a file with the flags and the mode of open(2), and O_CLOEXEC.
//   returns: a descriptor, for the volt_file_ functions only
VOLT_API VOLT_POLL volt_file_open(volt_cx *cx, volt_file_op *op, const char *path, int flags,
                                  unsigned mode);
// Reads `len` bytes at `offset`, fewer only at the end of the file. Cached data is read in place,
// without a pool thread, where the kernel has such reads (Linux 4.14).
//   returns: the number of bytes
VOLT_API VOLT_POLL volt_file_pread(volt_cx *cx, volt_file_op *op, int fd, void *buf, size_t len,
                                   int64_t offset);
// Writes `len` bytes at `offset`.
//   returns: len. After an error a part may have been written
VOLT_API VOLT_POLL volt_file_pwrite(volt_cx *cx, volt_file_op *op, int fd, const void *buf,
                                    size_t len, int64_t offset);
// Writes `len` bytes at the end of a file that was opened with O_APPEND, or at its position.
//   returns: len. After an error a part may have been written
VOLT_API VOLT_POLL volt_file_append(volt_cx *cx, volt_file_op *op, int fd, const void *buf,
                                    size_t len);
// Sets the length of the file.
//   returns: 0
VOLT_API VOLT_POLL volt_file_truncate(volt_cx *cx, volt_file_op *op, int fd, int64_t len);
// Waits until the file is on the disk: fsync(2), or with is_data_only fdatasync(2), which need not
// write the time stamps.
//   returns: 0
VOLT_API VOLT_POLL volt_file_sync(volt_cx *cx, volt_file_op *op, int fd, int is_data_only);
// Calls stat(2).
//   returns: 0 with the result in *out
VOLT_API VOLT_POLL volt_file_stat(volt_cx *cx, volt_file_op *op, const char *path,
                                  struct stat *out);
// The same for a descriptor.
VOLT_API VOLT_POLL volt_file_fstat(volt_cx *cx, volt_file_op *op, int fd, struct stat *out);
// Closes a descriptor of volt_file_open, whatever the result: also in a cancelled scope, and in the
// poll itself if no thread can be had. volt_close does it in place.
//   returns: 0 | the error of close(2), such as of a write that a network file system has put off
VOLT_API VOLT_POLL volt_file_close(volt_cx *cx, volt_file_op *op, int fd);
// Reads a whole file into a buffer of `cap` bytes.
//   returns: the length of the file | -EFBIG if it is more than `cap`
VOLT_API VOLT_POLL volt_file_load(volt_cx *cx, volt_file_op *op, const char *path, void *buf,
                                  size_t cap);
// Writes a whole file: creates it with `mode`, or truncates it. Another reader may see it in part.
//   returns: len
VOLT_API VOLT_POLL volt_file_save(volt_cx *cx, volt_file_op *op, const char *path, const void *buf,
                                  size_t len, unsigned mode);
// Replaces a whole file, or creates it: each reader sees the old or the new content, also after a
// loss of power. Writes a new file with `mode` beside it (its name is `path`, a dot and 16
// digits), waits until that is on the disk, renames it, and waits for the directory. After an error
// the old file stays, unless only the wait for the directory has failed. A symbolic link is
// replaced itself.
//   returns: len | -ENAMETOOLONG
VOLT_API VOLT_POLL volt_file_replace(volt_cx *cx, volt_file_op *op, const char *path,
                                     const void *buf, size_t len, unsigned mode);
// Renames, removes a file, makes a directory, removes an empty one.
//   returns: 0
VOLT_API VOLT_POLL volt_file_rename(volt_cx *cx, volt_file_op *op, const char *from,
                                    const char *to);
VOLT_API VOLT_POLL volt_file_unlink(volt_cx *cx, volt_file_op *op, const char *path);
VOLT_API VOLT_POLL volt_dir_make(volt_cx *cx, volt_file_op *op, const char *path, unsigned mode);
VOLT_API VOLT_POLL volt_dir_remove(volt_cx *cx, volt_file_op *op, const char *path);
// Reads the next entries of a directory, of volt_file_open with O_DIRECTORY, into a buffer that is
// aligned to 8 bytes and has at least 512.
//   returns: the number of bytes for volt_dir_next | 0 at the end | -EINVAL if the buffer is too
//            small for the next entry
VOLT_API VOLT_POLL volt_dir_read(volt_cx *cx, volt_file_op *op, int fd, void *buf, size_t cap);
// Takes the next of the entries in a buffer of volt_dir_read. *at, the position, is 0 at first; "."
// and ".." are skipped.
//   where  : any thread
//   returns: 1 | 0 if none is left
VOLT_API int volt_dir_next(const void *buf, size_t len, size_t *at, volt_dir_entry *out);
#endif // VOLT_NO_FILES

// ---- groups
// A group owns the children that are spawned into it (volt_group_spawn). The task that spawned the
// first of them owns the group: only this task may wait for the children or close the group. If its
// function returns with the group open, the group is closed before the task ends; a debug build
// stops the program if a child has not ended.

// Makes the group keep the results of its children for volt_group_next. Without this call only the
// first negative result is kept, for volt_group_wait.
//   where  : any thread, before the first spawn
VOLT_API void volt_group_collect(volt_group *g);
// Waits until all children have ended. If the wait is cancelled, the children run on.
//   returns: 0 | the first negative result of a child since the last wait
VOLT_API VOLT_POLL volt_group_wait(volt_cx *cx, volt_group *g);
// Waits for the next result, in order of completion. *id becomes the number of that spawn, counted
// from 0, and from 0 again after a volt_group_close; id NULL: not wanted.
//   returns: the result of a child | -ENOENT if no child and no result is left | -EINVAL without
//            volt_group_collect
VOLT_API VOLT_POLL volt_group_next(volt_cx *cx, volt_group *g, uint64_t *id);
// Cancels all children that have been spawned so far, and none that is spawned later.
//   where  : any thread, while the memory of the group exists
VOLT_API void volt_group_cancel(volt_group *g);
// Cancels all children and waits until they have ended, without a time limit. Cannot be cancelled
// itself. The group may be used again after it.
//   returns: 0
VOLT_API VOLT_POLL volt_group_close(volt_cx *cx, volt_group *g);

// ---- time

// The current time of CLOCK_MONOTONIC.
//   where  : any thread
VOLT_API volt_time volt_now(void);
// Sleeps for a duration, or until an absolute time; returns at once if the time has passed
// already. A sleep never ends early. In debug builds a duration of 1 to 999 ns, which is probably
// a forgotten VOLT_MS, stops the program.
//   returns: 0
VOLT_API VOLT_POLL volt_sleep(volt_cx *cx, volt_time at_least);
VOLT_API VOLT_POLL volt_sleep_until(volt_cx *cx, volt_time deadline);
// Sets up a periodic timer, whose first tick is one period from now. Set iv->missed afterwards to
// choose another behaviour than VOLT_MISSED_BURST.
//   where  : any thread
VOLT_API void volt_interval_init(volt_interval *iv, volt_time period);
// Waits for the next tick.
//   returns: the number of ticks that this result stands for: 1, or with VOLT_MISSED_SKIP 1 or
//            more | -EINVAL without volt_interval_init, or if the period is not positive
VOLT_API VOLT_POLL volt_interval_next(volt_cx *cx, volt_interval *iv);

// ---- synchronisation
// A wait has up to three forms, which share one contract. The awaited form is for tasks. The
// `_sync` form blocks a plain thread, for `at_most` at most; it also returns -ETIMEDOUT, or
// -EDEADLK on a worker, and a shutdown does not end it. The `try_` form exists where a wait takes
// something, and returns -EAGAIN where it would have to wait. The `try_` form and all functions
// that do not wait may be called by any thread.
//
// Waits are served in order of arrival, except those for a mutex and a once, and the relocking of a
// condition variable. The turn of a wait that is cancelled passes to the next.
//
// A caller that a wait or a `try_` function has let through, by any result but -EAGAIN,
// -ECANCELED, -ETIMEDOUT, -EDEADLK and -EINVAL, may free the object, if no other caller will use
// it. A result of a function that only asks (is_set, is_done, is_closed, count, available, len)
// does not permit that: the thread that has made the change may still be using the object.

// Locks a mutex. The holder may await before it unlocks, but must not lock it again: it would wait
// for itself, and a debug build stops the program. Unfair: an arriving caller may take a free lock
// before the first waiter, which was woken, has run. After four such losses the lock is given to
// the waiter directly. A mutex of VOLT_MUTEX_FIFO is always given to the first waiter, at the cost
// of a task switch each time.
//   returns: 0
//   Order  : all that was done before an unlock is visible after the next lock
VOLT_API VOLT_POLL volt_mutex_lock(volt_cx *cx, volt_mutex *m);
VOLT_API VOLT__MUST int volt_mutex_try_lock(volt_mutex *m);
VOLT_API VOLT__MUST int volt_mutex_lock_sync(volt_mutex *m, volt_time at_most);
// Unlocks a mutex that the calling task or thread has locked. The program stops if the mutex is not
// locked, and in a debug build also if another task has locked it.
VOLT_API void volt_mutex_unlock(volt_mutex *m);

// Locks for reading, by many, or for writing, by one. A reader also waits behind a writer that
// waits, so a task that holds the lock must not lock it again, not even for reading.
//   returns: 0
//   Order  : as a mutex, between a writer and all others
VOLT_API VOLT_POLL volt_rwlock_read(volt_cx *cx, volt_rwlock *l);
VOLT_API VOLT_POLL volt_rwlock_write(volt_cx *cx, volt_rwlock *l);
VOLT_API VOLT__MUST int volt_rwlock_try_read(volt_rwlock *l);
VOLT_API VOLT__MUST int volt_rwlock_try_write(volt_rwlock *l);
VOLT_API VOLT__MUST int volt_rwlock_read_sync(volt_rwlock *l, volt_time at_most);
VOLT_API VOLT__MUST int volt_rwlock_write_sync(volt_rwlock *l, volt_time at_most);
// Unlocks, from reading or from writing. The program stops if it is not locked.
VOLT_API void volt_rwlock_unlock(volt_rwlock *l);
// Turns the lock of a writer into that of a reader; no other writer gets the lock in between. The
// program stops if it is not locked for writing.
VOLT_API void volt_rwlock_downgrade(volt_rwlock *l);

// Takes n permits together. A wait for many permits is not overtaken by later waits for few.
//   returns: 0 | -EPIPE if the semaphore is closed | -EINVAL if n is above VOLT_SEM_MAX
//   Order  : all that was done before a release is visible after the acquire that took its permits
VOLT_API VOLT_POLL volt_sem_acquire(volt_cx *cx, volt_sem *s, uint32_t n);
VOLT_API VOLT__MUST int volt_sem_try_acquire(volt_sem *s, uint32_t n);
VOLT_API VOLT__MUST int volt_sem_acquire_sync(volt_sem *s, uint32_t n, volt_time at_most);
// Gives back n permits, or adds new ones.
//   returns: 0 | -EOVERFLOW if there would be more than VOLT_SEM_MAX: nothing is changed
VOLT_API int volt_sem_release(volt_sem *s, uint32_t n);
// Removes up to n of the permits that are free now, for good.
//   returns: the number removed
VOLT_API uint32_t volt_sem_forget(volt_sem *s, uint32_t n);
// The number of free permits, which may have changed by the time of the return.
VOLT_API uint32_t volt_sem_available(const volt_sem *s);
// Closes the semaphore for good: every acquire returns -EPIPE, even if permits are free. A release
// is still counted.
VOLT_API void volt_sem_close(volt_sem *s);

// Begins work that is done once. The first caller does it, and may await during it; others wait.
//     VOLT_AWAIT(c->rc, volt_once_begin(cx, &once));
//     if (c->rc == 1) { ... volt_once_end(&once, succeeded); }
//   returns: 1 if the caller must do the work and then call volt_once_end | 0 if it is done
//   Order  : all that was done before the work ended is visible after a result of 0
VOLT_API VOLT_POLL volt_once_begin(volt_cx *cx, volt_once *o);
VOLT_API VOLT__MUST int volt_once_try_begin(volt_once *o);
VOLT_API VOLT__MUST int volt_once_begin_sync(volt_once *o, volt_time at_most);
// Ends the work. Called once, by the caller that received 1 from volt_once_begin. is_done 0: the
// work has failed, and the next caller does it. The program stops if no work has begun.
VOLT_API void volt_once_end(volt_once *o, int is_done);
// Returns 1 if the work is done, else 0.
VOLT_API int volt_once_is_done(const volt_once *o);

// Waits until the event is set. It stays set until it is reset.
//   returns: 0
//   Order  : all that was done before the set is visible
VOLT_API VOLT_POLL volt_event_wait(volt_cx *cx, volt_event *e);
VOLT_API VOLT__MUST int volt_event_wait_sync(volt_event *e, volt_time at_most);
// Sets the event, resets it, or returns whether it is set. A reset does not stop a waiter that a
// set has let through.
VOLT_API void volt_event_set(volt_event *e);
VOLT_API void volt_event_reset(volt_event *e);
VOLT_API int volt_event_is_set(const volt_event *e);

// Waits until the count of the wait group is 0.
//   returns: 0
//   Order  : all that was done before the last volt_wait_group_done is visible
VOLT_API VOLT_POLL volt_wait_group_wait(volt_cx *cx, volt_wait_group *g);
VOLT_API VOLT__MUST int volt_wait_group_wait_sync(volt_wait_group *g, volt_time at_most);
// Adds n to the count, or subtracts 1, which stops the program if the count is 0.
//   returns: 0 | -EOVERFLOW if the count would exceed 2^31 - 1: nothing is changed
VOLT_API int volt_wait_group_add(volt_wait_group *g, uint32_t n);
VOLT_API void volt_wait_group_done(volt_wait_group *g);

// Waits until the tracker is closed and each volt_tracker_enter was followed by a leave.
//   returns: 0
//   Order  : all that was done before the last leave is visible
VOLT_API VOLT_POLL volt_tracker_wait(volt_cx *cx, volt_tracker *t);
VOLT_API VOLT__MUST int volt_tracker_wait_sync(volt_tracker *t, volt_time at_most);
// Enters or leaves the tracker, or closes it to further enters, for good. The program stops at a
// leave without an enter.
//   returns: 0 | -EPIPE if the tracker is closed | -EOVERFLOW if 2^30 - 1 are inside
VOLT_API VOLT__MUST int volt_tracker_enter(volt_tracker *t);
VOLT_API void volt_tracker_leave(volt_tracker *t);
VOLT_API void volt_tracker_close(volt_tracker *t);

// Waits for a notification. A notification that finds no waiter is kept for the next wait, but at
// most one is kept.
//   returns: 0
//   Order  : all that was done before the notification is visible
VOLT_API VOLT_POLL volt_notify_wait(volt_cx *cx, volt_notify *notify);
VOLT_API VOLT__MUST int volt_notify_try_wait(volt_notify *notify);
VOLT_API VOLT__MUST int volt_notify_wait_sync(volt_notify *notify, volt_time at_most);
// Notifies one wait, the one that began first or the one that began last; or all waits that have
// begun, without keeping a notification for a later one. If a notified wait is cancelled, its
// notification passes to the next waiter from the same end.
VOLT_API void volt_notify_one(volt_notify *notify);
VOLT_API void volt_notify_last(volt_notify *notify);
VOLT_API void volt_notify_all(volt_notify *notify);
// A wait for a condition whose changes are announced by volt_notify_all: read the count, then
// check the condition, then wait past the count. The wait ends at once if a volt_notify_all came
// since the count was read, and otherwise with the next one. It takes no kept notification.
//   returns: volt_notify_count the number of calls of volt_notify_all, modulo 2^30; the waits 0
VOLT_API uint32_t volt_notify_count(const volt_notify *notify);
VOLT_API VOLT_POLL volt_notify_wait_past(volt_cx *cx, volt_notify *notify, uint32_t count);
VOLT_API VOLT__MUST int volt_notify_wait_past_sync(volt_notify *notify, uint32_t count,
                                                   volt_time at_most);

// Waits until n callers have arrived, n being that of VOLT_BARRIER_INIT; then the next round
// begins. A wait that is cancelled before that does not count as an arrival.
//   returns: 1 to one caller of the round, 0 to the others, even if they are cancelled after the
//            last arrival
//   Order  : all that each caller did before its arrival is visible to all after the round
VOLT_API VOLT_POLL volt_barrier_wait(volt_cx *cx, volt_barrier *b);
VOLT_API VOLT__MUST int volt_barrier_wait_sync(volt_barrier *b, volt_time at_most);

// Unlocks the mutex, which the caller has locked, waits for a signal, and locks the mutex again.
// The mutex is locked at each return. Check the condition again after the wait. The relocking
// cannot be cancelled and has no time limit.
//   returns: 0 | -ECANCELED if the wait was cancelled before the relocking began: a signal that it
//            had received passes to the next waiter | `_sync`: -ETIMEDOUT | -EDEADLK
//   Order  : as the mutex
VOLT_API VOLT_POLL volt_cond_wait(volt_cx *cx, volt_cond *c, volt_mutex *m);
VOLT_API VOLT__MUST int volt_cond_wait_sync(volt_cond *c, volt_mutex *m, volt_time at_most);
// Wakes the wait that began first, or all waits. Does nothing if there is none.
//   where  : any thread, with or without the mutex
VOLT_API void volt_cond_signal(volt_cond *c);
VOLT_API void volt_cond_broadcast(volt_cond *c);

// ---- channels
// The results are like those of read(2), so that one loop fits all channels: a receive returns 1
// for a message and 0 once the channel is closed and drained; a send returns 0, or -EPIPE once the
// channel is closed. Some results differ: a broadcast's send returns the number of subscribers, its
// receive -EOVERFLOW for lost messages; a oneshot's receive gives the value itself, or -EPIPE;
// calls for several messages give their number. The forms of a wait, and the moment from which an
// object may be freed, are as in "synchronisation".
//
// Messages are copied, except by a queue. Each one is delivered once, by a broadcast at most once
// to each subscriber; a cancelled wait has neither sent nor received. `size` is the size of an
// element in bytes. Any other value gives -EINVAL; in a debug build the awaited calls, and the
// sends of a broadcast or watch, stop the program instead. Waiting receivers are granted messages
// in order of arrival; of two that have been granted one, the receiver that runs first takes the
// older message. All that was done before a send is visible after the receive.
//
// A rendezvous has no buffer. A send returns 0 once a receiver has the message in its own memory,
// and the waits of both end at that moment: an arm of a select whose wait ends so wins its select,
// and a wait that is cancelled later returns its result, not -ECANCELED. A try_recv takes the
// message of a waiting sender, a try_send passes its message to a waiting receiver. Two arms of
// one select do not meet, but a wait inside an async function that is an arm can be met by another
// arm. The channel may be freed only when the calls of both sides have returned.

// Initialises a channel over a buffer of `cap` elements of `elem` bytes each, as VOLT_CHAN_INIT
// does. cap 0: a rendezvous, whose buffer has one element.
//   returns: 0 | -EINVAL if `elem` is 0 or above 2^32 - 1, or `cap` is 2^31 or more
//   memory : `buf` belongs to the caller, and must exist until the last use of the channel
VOLT_API int volt_chan_init(volt_chan *c, void *buf, size_t elem, size_t cap);
// The same with a buffer that the runtime allocates.
//   returns: 0 | -ENOMEM | -EINVAL if `elem` is 0, or if the buffer would have 2^31 bytes or more
//   memory : allocates the buffer until volt_chan_destroy, which must come before the end of the
//            runtime
VOLT_API int volt_chan_create(volt_rt *rt, volt_chan *c, size_t elem, size_t cap);
// Frees the buffer of volt_chan_create; does nothing for another channel. If a task or thread
// waits, the program stops.
//   where  : any thread, after the last use of the channel
VOLT_API void volt_chan_destroy(volt_chan *c);

// Sends a copy of *v.
//   returns: 0 | -EPIPE if the channel is closed | -EINVAL if `size` is not that of an element
//   wakes  : when a slot is free, in order of arrival; in a rendezvous, when a receiver has taken
//            the message. *v is read until then
VOLT_API VOLT_POLL volt_chan_send(volt_cx *cx, volt_chan *c, const void *v, size_t size);
VOLT_API VOLT__MUST int volt_chan_try_send(volt_chan *c, const void *v, size_t size);
VOLT_API VOLT__MUST int volt_chan_send_sync(volt_chan *c, const void *v, size_t size,
                                            volt_time at_most);
// Receives the oldest message into *v.
//   returns: 1 | 0 if the channel is closed and drained | -EINVAL if `size` is not that of an
//            element
VOLT_API VOLT_POLL volt_chan_recv(volt_cx *cx, volt_chan *c, void *v, size_t size);
VOLT_API VOLT__MUST int volt_chan_try_recv(volt_chan *c, void *v, size_t size);
VOLT_API VOLT__MUST int volt_chan_recv_sync(volt_chan *c, void *v, size_t size, volt_time at_most);
// Sends or receives up to n messages, from or to the array v: waits until one is possible, and
// then moves as many as are possible at once.
//   returns: the number of messages, 1 or more | the other results of volt_chan_send and
//            volt_chan_recv | -EINVAL if n is 0
VOLT_API VOLT_POLL volt_chan_send_n(volt_cx *cx, volt_chan *c, const void *v, size_t size,
                                    uint32_t n);
VOLT_API VOLT__MUST int volt_chan_try_send_n(volt_chan *c, const void *v, size_t size, uint32_t n);
VOLT_API VOLT__MUST int volt_chan_send_n_sync(volt_chan *c, const void *v, size_t size, uint32_t n,
                                              volt_time at_most);
VOLT_API VOLT_POLL volt_chan_recv_n(volt_cx *cx, volt_chan *c, void *v, size_t size, uint32_t n);
VOLT_API VOLT__MUST int volt_chan_try_recv_n(volt_chan *c, void *v, size_t size, uint32_t n);
VOLT_API VOLT__MUST int volt_chan_recv_n_sync(volt_chan *c, void *v, size_t size, uint32_t n,
                                              volt_time at_most);
// Reserves a slot for one message. The slot must then be used by volt_chan_send_reserved, even
// after the channel was closed, or given up by volt_chan_unreserve. A reservation has no owner:
// one that is neither used nor given up blocks its slot for good. In a rendezvous a slot can be
// reserved while a receiver waits; if that receiver leaves, the message waits for the next one.
// There, too, waits are served in order of arrival: a send that waits behind a waiting reservation
// has its turn after it.
//   returns: 0 | -EPIPE if the channel is closed
VOLT_API VOLT_POLL volt_chan_reserve(volt_cx *cx, volt_chan *c);
VOLT_API VOLT__MUST int volt_chan_try_reserve(volt_chan *c);
VOLT_API VOLT__MUST int volt_chan_reserve_sync(volt_chan *c, volt_time at_most);
// Sends a message into a reserved slot, or gives the slot up: one of the two, once for each
// reservation. A call without a reservation is detected only if no slot of the channel is
// reserved: volt_chan_unreserve then stops the program in a debug build.
//   returns: 0 | -EINVAL if `size` is not that of an element, or if no slot at all is reserved
VOLT_API int volt_chan_send_reserved(volt_chan *c, const void *v, size_t size);
VOLT_API void volt_chan_unreserve(volt_chan *c);
// Closes the channel for good, from either side, or returns whether it is closed. Sends that wait
// end with -EPIPE; messages in the buffer, and those of reservations, are still received.
VOLT_API void volt_chan_close(volt_chan *c);
VOLT_API int volt_chan_is_closed(const volt_chan *c);
// Waits until the channel is closed.
//   returns: 0
VOLT_API VOLT_POLL volt_chan_wait_closed(volt_cx *cx, volt_chan *c);
VOLT_API VOLT__MUST int volt_chan_wait_closed_sync(volt_chan *c, volt_time at_most);
// Counts the users of one side: the release that brings the count of a side to 0 closes the
// channel, and does not free it. Receivers learn by a result of 0 that the last sender has left.
// side: VOLT_CHAN_SENDER or VOLT_CHAN_RECEIVER. The program stops at a release without a
// retain.
VOLT_API void volt_chan_retain(volt_chan *c, int side);
VOLT_API void volt_chan_release(volt_chan *c, int side);
// The number of messages in the buffer now, and the capacity, which is 0 for a rendezvous.
VOLT_API uint32_t volt_chan_len(volt_chan *c);
VOLT_API uint32_t volt_chan_cap(const volt_chan *c);

// Pushes a message, given its node, which is a member of the message. Never waits.
//   returns: 0 | -EPIPE if the queue is closed
//   memory : the message is the queue's until it is received; after -EPIPE it is the caller's
VOLT_API VOLT__MUST int volt_queue_push(volt_queue *q, volt_queue_node *n);
// Receives the oldest message: *out is the address of its node. The program stops if two callers
// wait.
//   where  : one task or thread at a time
//   returns: 1 | 0 if the queue is closed and drained
//   memory : the message is then the caller's
VOLT_API VOLT_POLL volt_queue_pop(volt_cx *cx, volt_queue *q, volt_queue_node **out);
VOLT_API VOLT__MUST int volt_queue_try_pop(volt_queue *q, volt_queue_node **out);
VOLT_API VOLT__MUST int volt_queue_pop_sync(volt_queue *q, volt_queue_node **out,
                                            volt_time at_most);
// Closes the queue for good, from either side. Messages in it are still received.
VOLT_API void volt_queue_close(volt_queue *q);

// Sends the value. Never waits.
//   where  : any thread, one at a time
//   returns: 0 | -EPIPE if a value was sent before, or either side has closed the oneshot |
//            -EINVAL if the value is -4096, which is not a result
VOLT_API int volt_oneshot_send(volt_oneshot *o, int64_t value);
// Waits for the value, and takes it.
//   returns: the value, of which a negative one looks like an error | -EPIPE if the oneshot was
//            closed without a value, or the value was received already
VOLT_API VOLT_POLL volt_oneshot_recv(volt_cx *cx, volt_oneshot *o);
// The same without waiting, or for a thread.
//   returns: 0 with the value in *value | -EPIPE | `try_`: -EAGAIN | `_sync`: -ETIMEDOUT, -EDEADLK
VOLT_API VOLT__MUST int volt_oneshot_try_recv(volt_oneshot *o, int64_t *value);
VOLT_API VOLT__MUST int volt_oneshot_recv_sync(volt_oneshot *o, volt_time at_most, int64_t *value);
// Closes the oneshot, from either side: the sender will send no value, or the receiver wants none.
// A value that was sent before can still be received.
VOLT_API void volt_oneshot_close(volt_oneshot *o);
// Returns 1 if there is no value and none will come, because the oneshot was closed or the value
// was received; else 0.
VOLT_API int volt_oneshot_is_closed(const volt_oneshot *o);
// Waits until the oneshot is closed or its value was sent: for a sender that gives up its work
// once the value is no longer wanted.
//   returns: 0
VOLT_API VOLT_POLL volt_oneshot_wait_closed(volt_cx *cx, volt_oneshot *o);
VOLT_API VOLT__MUST int volt_oneshot_wait_closed_sync(volt_oneshot *o, volt_time at_most);

// Sends a copy of *v to all subscribers. Never waits: the message replaces the oldest one if the
// buffer is full.
//   returns: the number of subscribers | -EPIPE if the broadcast is closed | -EINVAL if `size` is
//            not that of an element, or the broadcast is zeroed memory
VOLT_API int volt_bcast_send(volt_bcast *b, const void *v, size_t size);
// Closes the broadcast for good. Messages in the buffer are still received.
VOLT_API void volt_bcast_close(volt_bcast *b);
// Opens a subscription, which receives the messages that are sent from now on; or closes it, which
// does nothing if it is not open. A volt_sub is for one task or thread at a time.
//   memory : *b must exist until the subscription is closed
VOLT_API void volt_sub_open(volt_sub *s, volt_bcast *b);
VOLT_API void volt_sub_close(volt_sub *s);
// Receives the next message into *v. The program stops if the subscription is not open.
//   returns: 1 | 0 if the broadcast is closed and drained | -EOVERFLOW if messages were lost: the
//            next call receives the oldest one that is left | -EINVAL if `size` is not that of an
//            element
VOLT_API VOLT_POLL volt_sub_recv(volt_cx *cx, volt_sub *s, void *v, size_t size);
VOLT_API VOLT__MUST int volt_sub_try_recv(volt_sub *s, void *v, size_t size);
VOLT_API VOLT__MUST int volt_sub_recv_sync(volt_sub *s, void *v, size_t size, volt_time at_most);
// The number of messages that this subscription has lost since the last call.
VOLT_API uint64_t volt_sub_lost(volt_sub *s);

// Sets the value to a copy of *v. Never waits.
//   returns: 0 | -EPIPE if the watch is closed | -EINVAL if `size` is not that of the value
VOLT_API int volt_watch_set(volt_watch *w, const void *v, size_t size);
// The same, if the value was not set since volt_watch_get gave `version`, a count modulo 2^32.
//   returns: as volt_watch_set | -EAGAIN if the version is another one
VOLT_API int volt_watch_set_if(volt_watch *w, const void *v, size_t size, uint32_t version);
// Copies the value to *v, and its version to *version_or_null; NULL: not wanted.
//   returns: 0, even if the watch is closed | -EINVAL if `size` is not that of the value
VOLT_API int volt_watch_get(volt_watch *w, void *v, size_t size, uint32_t *version_or_null);
// Closes the watch for good. The last value can still be received.
VOLT_API void volt_watch_close(volt_watch *w);
// Begins to watch. The current value counts as seen. A volt_watcher is for one task or thread at a
// time, and needs no closing.
//   memory : *w must exist while the watcher is used
VOLT_API void volt_watcher_open(volt_watcher *r, volt_watch *w);
// Waits for a value that this watcher has not seen, and copies the newest one to *v. The program
// stops if the watcher was not opened.
//   returns: 1 | 0 if the watch is closed and the value was seen | -EINVAL if `size` is not that
//            of the value
VOLT_API VOLT_POLL volt_watcher_next(volt_cx *cx, volt_watcher *r, void *v, size_t size);
VOLT_API VOLT__MUST int volt_watcher_try_next(volt_watcher *r, void *v, size_t size);
VOLT_API VOLT__MUST int volt_watcher_next_sync(volt_watcher *r, void *v, size_t size,
                                               volt_time at_most);
// Waits for a value for which is_wanted(v, arg) returns 1, beginning with the current one, and
// copies it to *v. Rejected values count as seen. is_wanted is called by the waiting task or
// thread, under the lock of the watch: it must be quick, and must not call any function of volt.
//   returns: 1 | 0 if the watch is closed and its value is not wanted | -EINVAL if `size` is not
//            that of the value
VOLT_API VOLT_POLL volt_watcher_until(volt_cx *cx, volt_watcher *r,
                                      int (*is_wanted)(const void *v, void *arg), void *arg,
                                      void *v, size_t size);
VOLT_API VOLT__MUST int volt_watcher_until_sync(volt_watcher *r,
                                                int (*is_wanted)(const void *v, void *arg),
                                                void *arg, void *v, size_t size,
                                                volt_time at_most);

// ---- tokens
// Functions without a volt_cx may be called by any thread.

// Initialises a token as a child of `parent`, cancelled if the parent is. parent NULL: a root, as
// a zeroed volt_token is.
//   memory : the parent must exist until volt_token_deinit of the child
VOLT_API void volt_token_init(volt_token *t, volt_token *parent);
// Detaches a child token from its parent, before its memory is freed. The program stops if a task
// waits for the token, or if it has children or hooks; volt_token_unhook must have been called for
// each hook, also for those that were called. A root without these needs no deinit.
VOLT_API void volt_token_deinit(volt_token *t);
// Cancels the token and all tokens below it, and calls their hooks.
VOLT_API void volt_token_cancel(volt_token *t);
// Returns 1 if the token is cancelled, else 0. A result of 1 does not permit freeing the token: the
// canceller may still be using it.
VOLT_API int volt_token_is_cancelled(const volt_token *t);
// Waits until the token is cancelled.
//   returns: 0
VOLT_API VOLT_POLL volt_token_wait(volt_cx *cx, volt_token *t);
// Registers a hook: fn(arg) is called once when the token is cancelled, by the canceller, after it
// has woken the waiters, and under no lock. fn must not wait, and must not call volt_token_unhook
// or volt_token_deinit.
//   returns: 0 | -ECANCELED if the token is cancelled already: fn is not called
//   memory : *h is the caller's, and must exist until volt_token_unhook has returned
VOLT_API VOLT__MUST int volt_token_hook(volt_token *t, volt_hook *h, void (*fn)(void *arg),
                                        void *arg);
// Removes a hook. Must be called once for each hook, before its token is deinitialised or freed.
// While the token is being cancelled, the call blocks until this hook has returned. The hooks of a
// whole subtree run one after another, so hold no lock that any of them takes.
//   returns: 1 if fn was not called and will not be | 0 if fn was called, or volt_token_hook failed
VOLT_API int volt_token_unhook(volt_hook *h);

#ifndef VOLT_NO_IO
// ---- descriptors and sockets
// Descriptors are plain ints. Close them with volt_close, see "descriptors" in >>manual. Functions
// without a volt_cx may be called by any thread, except volt_pollset_wait_sync.

// Parses "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "*:80" for all addresses, IPv6 and IPv4,
// "unix:/path", or "unix:@name", which is an abstract name. Host names are not accepted.
//   returns: 0 | -EINVAL | -ENODEV if there is no interface of that name | -EMFILE, -ENFILE or
//            -ENOMEM if the kernel cannot be asked for the interface
VOLT_API int volt_addr_parse(volt_addr *a, const char *text);
// Writes the address in the same form, with a terminating 0. VOLT_ADDR_TEXT bytes are enough. A 0
// inside an abstract name becomes @.
//   returns: the length without the 0 | -ENOSPC if `len` is too small | -EAFNOSUPPORT
VOLT_API int volt_addr_format(const volt_addr *a, char *buf, size_t len);
// The address of a numeric host; NULL: all addresses, IPv6 and IPv4.
//   returns: as volt_addr_parse
VOLT_API int volt_addr_make(volt_addr *a, const char *host_or_null, unsigned port);
// Copies an address of any family, or returns the address to be passed to a system call, and its
// length in *len.
//   returns: volt_addr_from 0 | -EINVAL if `len` is below 2 or above 120
//   memory : volt_addr_sockaddr points into *a
VOLT_API int volt_addr_from(volt_addr *a, const struct sockaddr *sa, size_t len);
VOLT_API const struct sockaddr *volt_addr_sockaddr(const volt_addr *a, unsigned *len);
// The family: AF_INET, AF_INET6, AF_UNIX ...; AF_UNSPEC of zeroed memory.
VOLT_API int volt_addr_family(const volt_addr *a);
// The port of the address, or 0 if it has none.
VOLT_API int volt_addr_port(const volt_addr *a);
// Sets the port.
//   returns: 0 | -EINVAL if `port` is above 65535 | -EAFNOSUPPORT if the family has none
VOLT_API int volt_addr_set_port(volt_addr *a, unsigned port);
// Returns 1 if both have the same address, port and scope, or path, else 0. An IPv4 address and its
// IPv6-mapped form, which a socket for both families gives, are equal.
VOLT_API int volt_addr_equal(const volt_addr *a, const volt_addr *b);
// Turns an IPv6-mapped IPv4 address into that IPv4 address, for comparing and logging. An IPv6
// socket sends to the mapped form only.
VOLT_API void volt_addr_unmap(volt_addr *a);
// Return 1 if the address is one of this host alone (127.0.0.0/8, ::1), the wildcard, or of a
// multicast group, mapped or not; else 0.
VOLT_API int volt_addr_is_loopback(const volt_addr *a);
VOLT_API int volt_addr_is_any(const volt_addr *a);
VOLT_API int volt_addr_is_multicast(const volt_addr *a);
// A hash of what volt_addr_equal compares. It is not seeded: a table whose peers are not trusted
// must bound its chains.
VOLT_API uint32_t volt_addr_hash(const volt_addr *a);
// The address of a socket, or of its peer.
//   returns: 0 with the address in *out | -errno
VOLT_API int volt_local_addr(int fd, volt_addr *out);
VOLT_API int volt_peer_addr(int fd, volt_addr *out);
// Opens a listening TCP socket. host: a numeric address; NULL: all addresses, IPv6 and IPv4. port
// 0: a free port, see volt_local_addr. options_or_null NULL: the defaults. Sets SO_REUSEADDR, so
// that a server that starts again finds its port free.
//   returns: a descriptor, non-blocking and close-on-exec | -EINVAL: invalid address | -EADDRINUSE
//            | -EACCES | -EMFILE, -ENFILE | -EAFNOSUPPORT with an IPv6 address or .is_v6only, if
//            the system has no IPv6 | another -errno
VOLT_API int volt_listen(const char *host, unsigned port,
                         const volt_listen_options *options_or_null);
// The same with any address. The path of a unix socket must not exist, or with .is_replacing, be
// that of a socket without a server: a connection is tried. Meanwhile the directory is locked by
// flock(2), and a second server that replaces a path in it is refused. The mode and the owner are
// set before clients can connect.
//   returns: as volt_listen | -EAFNOSUPPORT | -EADDRINUSE, also if the path is another file
VOLT_API int volt_listen_addr(const volt_addr *a, const volt_listen_options *options_or_null);
// Accepts the next connection. Skips connections that have failed already, and at most 100 in a
// row that a firewall refuses; the next one of these ends the wait with its error. While
// descriptors or memory are short (EMFILE, ENFILE, ENOBUFS, ENOMEM) it tries again every 5 to 500
// ms.
//   returns: a descriptor, non-blocking and close-on-exec | -EINVAL if `fd` is not listening |
//            -ENOTSOCK | -EPERM, or another -errno
VOLT_API VOLT_POLL volt_accept(volt_cx *cx, int fd);
// The same, with the address of the peer in *peer, which is not written without a connection.
VOLT_API VOLT_POLL volt_accept_from(volt_cx *cx, int fd, volt_addr *peer);
// Connects to an address. If the wait fails or is cancelled, the new socket is closed.
//   returns: a descriptor, non-blocking and close-on-exec | -ECONNREFUSED | -ETIMEDOUT | -EMFILE,
//            -ENFILE | -EAFNOSUPPORT | -EAGAIN if the backlog of a unix listener is full, or
//            another -errno
VOLT_API VOLT_POLL volt_connect(volt_cx *cx, const volt_addr *to);
// The same from a local address, whose port may be 0: the system chooses it.
//   returns: as volt_connect | -EADDRNOTAVAIL, -EADDRINUSE
VOLT_API VOLT_POLL volt_connect_from(volt_cx *cx, const volt_addr *to, const volt_addr *from);
// Connects a socket of the caller's, of any type; for options that are set before. A datagram
// socket gets this peer, without a wait. The socket stays open in every case; after a cancellation
// it may still be connecting.
//   returns: 0 | -EISCONN, -EALREADY | -ENOTSOCK | -EBADF, also if it is closed during the wait |
//            as volt_connect
VOLT_API VOLT_POLL volt_connect_on(volt_cx *cx, int fd, const volt_addr *to);
// Opens or binds a socket. type: SOCK_STREAM, SOCK_DGRAM ...
//   returns: volt_sock_open a descriptor, non-blocking and close-on-exec, volt_sock_bind 0 | -errno
VOLT_API int volt_sock_open(int family, int type, int protocol);
VOLT_API int volt_sock_bind(int fd, const volt_addr *a);
// Takes the error that the socket has stored (SO_ERROR), such as that of an ICMP message.
//   returns: 0 if there is none | that error, or another -errno
VOLT_API int volt_sock_error(int fd);
#ifndef VOLT_NO_NAMES
// Looks up the addresses of a host, by getaddrinfo on a pool thread; at most four lookups run at
// once. service: the name or number of a port. Concurrent lookups of the same names share one
// call. A cancelled wait ends at once.
//   returns: the number of addresses in `out`, at most `cap`, in the order of the system | -ENOENT
//            if there is no such host or service | -EAGAIN if the name server does not answer, or
//            no thread could be started | -ENOMEM | -EINVAL if `host` or `service` is NULL, or
//            longer than 255 or 31 characters | -EIO, or another -errno, if the resolver failed
//   memory : allocates about 2.5 KiB until the answer has come. The names are copied
VOLT_API VOLT_POLL volt_resolve(volt_cx *cx, volt_lookup *l, const char *host, const char *service,
                                volt_addr *out, size_t cap);
// Connects to a host by its name, as an async function with `d` as its state. Tries at most
// VOLT_DIAL_MAX of the first 16 addresses, alternating between IPv6 and IPv4 (RFC 8305). An attempt
// starts when an earlier one has failed, or 250 ms after the start of the one before. The first to
// connect wins, and the others are closed.
//   returns: a descriptor, as volt_connect | the error of the attempt that failed last | the
//            errors of volt_resolve
//   memory : as volt_resolve
VOLT_API VOLT_POLL volt_tcp_connect(volt_cx *cx, volt_dial *d, const char *host,
                                    const char *service);
#endif // VOLT_NO_NAMES
// Reads once: waits until there is data, and returns as much as one read gives. A length of 0
// returns 0 without a system call. At most 1024 iovecs are used per call, also in volt_writev.
//   returns: the number of bytes | 0 at the end of the file | -EBADF, also if the descriptor is
//            closed during the wait | -ECONNRESET, or another -errno
VOLT_API VOLT_POLL volt_read(volt_cx *cx, int fd, void *buf, size_t len);
VOLT_API VOLT_POLL volt_readv(volt_cx *cx, int fd, const struct iovec *iov, int n);
// Writes once, possibly only a part. Never raises SIGPIPE.
//   returns: the number of bytes | -EPIPE if the reader has closed, or another -errno
VOLT_API VOLT_POLL volt_write(volt_cx *cx, int fd, const void *buf, size_t len);
VOLT_API VOLT_POLL volt_writev(volt_cx *cx, int fd, const struct iovec *iov, int n);
// Reads or writes all of `len` bytes. After an error, volt_progress(&s->frame) bytes have been
// moved, where s is the state of the calling function.
//   returns: len | -EPIPE if the stream ended before `len` bytes (volt_read_exact), or the reader
//            has closed (volt_write_all) | another -errno
VOLT_API VOLT_POLL volt_read_exact(volt_cx *cx, int fd, void *buf, size_t len);
VOLT_API VOLT_POLL volt_write_all(volt_cx *cx, int fd, const void *buf, size_t len);
// Writes all of the buffers, as volt_write_all: the result is the sum of their lengths. `iov` is
// not changed, and is read in each poll.
//   returns: as volt_write_all | -EINVAL if the sum is above INT64_MAX, or `n` is below 0
VOLT_API VOLT_POLL volt_writev_all(volt_cx *cx, int fd, const struct iovec *iov, int n);
// Calls try_once(fd, arg), one system call that does not block, until it returns something else
// than -EAGAIN; between the calls, waits until the descriptor may be ready for `events`, which is
// VOLT_IN or VOLT_OUT. So any kernel interface that has a descriptor can be awaited: netlink, CAN,
// tun, a driver, a TLS library. The descriptor becomes non-blocking, as with volt_read. try_once
// runs during the poll, and is repeated after -EINTR; it must not await. The fd that it is given
// may be another descriptor of the same file.
//   returns: the result of try_once, which must not be -4096 | -EINVAL for other `events` | -EBADF,
//            also if the descriptor is closed during the wait
VOLT_API VOLT_POLL volt_io(volt_cx *cx, int fd, uint32_t events, volt_io_fn *try_once, void *arg);
// Waits until a read or a write is likely to succeed, for descriptors that volt reads and writes. A
// task that so waits needs no buffer, and may then read into memory on its stack. Costs no system
// call while the readiness is known; volt_readable makes one for each wait.
//   returns: 0, rarely also without need: then the volt_try_ call gives -EAGAIN, or -EBADF if the
//            descriptor was closed | -EBADF, or another -errno
VOLT_API VOLT_POLL volt_read_ready(volt_cx *cx, int fd);
VOLT_API VOLT_POLL volt_write_ready(volt_cx *cx, int fd);
// As volt_read, volt_readv, volt_write, volt_writev and volt_io, but without waiting, and outside
// an await. A task that calls them in a loop awaits something in each round.
//   where  : inside a task
//   returns: as those functions | -EAGAIN: volt_read_ready or volt_write_ready waits for the next
//            attempt
VOLT_API VOLT__MUST int64_t volt_try_read(volt_cx *cx, int fd, void *buf, size_t len);
VOLT_API VOLT__MUST int64_t volt_try_readv(volt_cx *cx, int fd, const struct iovec *iov, int n);
VOLT_API VOLT__MUST int64_t volt_try_write(volt_cx *cx, int fd, const void *buf, size_t len);
VOLT_API VOLT__MUST int64_t volt_try_writev(volt_cx *cx, int fd, const struct iovec *iov, int n);
VOLT_API VOLT__MUST int64_t volt_try_io(volt_cx *cx, int fd, uint32_t events, volt_io_fn *try_once,
                                        void *arg);
// Waits until the descriptor is readable or writable: for descriptors that another library reads
// and writes. Level-triggered: ends at once if the descriptor is so at the time of the call.
//   returns: 0 | -EBADF, or another -errno
VOLT_API VOLT_POLL volt_readable(volt_cx *cx, int fd);
VOLT_API VOLT_POLL volt_writable(volt_cx *cx, int fd);
// Calls shutdown(2) for one or both directions.
//   returns: 0, also if the connection has ended already | -EINVAL if both are 0 | another -errno
VOLT_API int volt_sock_shutdown(int fd, int is_read, int is_write);
// Closes a descriptor, in place of close(2). Its waiters get -EBADF. If another thread is inside a
// system call on it, that thread closes it after the call. The result of close(2) is dropped.
VOLT_API void volt_close(volt_cx *cx, int fd);
// The same without a volt_cx.
VOLT_API void volt_rt_close(volt_rt *rt, int fd);
// Makes the runtime forget a descriptor, without closing it. Its waiters get -EBADF. The call does
// not wait for system calls that are in progress on the descriptor: its number may be given to
// another file only when the waits on it have returned.
VOLT_API void volt_fd_release(volt_cx *cx, int fd);
// Socket options. Times are in s, sizes in bytes.
//   returns: 0 | -errno
VOLT_API int volt_set_nodelay(int fd, int is_on); // set by volt_connect and volt_listen
VOLT_API int volt_set_keepalive(int fd, int idle_s, int interval_s, int count); // idle_s 0: off
VOLT_API int volt_set_buffers(int fd, int send_bytes, int receive_bytes);      // 0: unchanged
// SO_LINGER: below 0: off; 0: a close resets the connection. Above 0: a close may block its worker
// for that time, even if the socket is non-blocking.
VOLT_API int volt_set_linger(int fd, int seconds);

// ---- messages
// As the POSIX functions of these names, on sockets of any type. MSG_DONTWAIT and MSG_NOSIGNAL are
// added to `flags`. Without an address a message goes to the connected peer. A length of 0 is a
// message of its own, not "nothing to do"; a result of 0 is such a message, or the end of a stream.
// A message that is longer than the buffer is never cut in silence: without MSG_TRUNC in `flags`
// the result is -EMSGSIZE, with its beginning in the buffer; with it the true length, above `len`.
// An error that an ICMP message has reported is returned by the next call, once.
//   returns: the number of bytes | -EMSGSIZE | -ECONNREFUSED, -EHOSTUNREACH | -ENOTSOCK | -EBADF,
//            also if the socket is closed during the wait | another -errno
VOLT_API VOLT_POLL volt_recv(volt_cx *cx, int fd, void *buf, size_t len, int flags);
VOLT_API VOLT_POLL volt_send(volt_cx *cx, int fd, const void *buf, size_t len, int flags);
VOLT_API VOLT_POLL volt_recvfrom(volt_cx *cx, int fd, void *buf, size_t len, int flags,
                                 volt_addr *from_or_null);
VOLT_API VOLT_POLL volt_sendto(volt_cx *cx, int fd, const void *buf, size_t len, int flags,
                               const volt_addr *to_or_null);
// As recvmsg(2) and sendmsg(2): truncation is in m->msg_flags.
VOLT_API VOLT_POLL volt_recvmsg(volt_cx *cx, int fd, struct msghdr *m, int flags);
VOLT_API VOLT_POLL volt_sendmsg(volt_cx *cx, int fd, const struct msghdr *m, int flags);
// Waits until one message is received or sent, and moves as many of the n as are possible at once.
// Needs no support of the kernel, which is faster with it.
//   returns: the number of messages, 1 or more: v[i].msg_len has the length of each | 0 if n is 0 |
//            as above. An error after the first message is left to the next call
VOLT_API VOLT_POLL volt_recvmmsg(volt_cx *cx, int fd, struct mmsghdr *v, unsigned n, int flags);
VOLT_API VOLT_POLL volt_sendmmsg(volt_cx *cx, int fd, struct mmsghdr *v, unsigned n, int flags);

#ifndef VOLT_NO_UDP
// Opens a UDP socket that is bound to *a; NULL: to any free port, for IPv6 and IPv4.
//   returns: a descriptor, non-blocking and close-on-exec | -EADDRINUSE | -EADDRNOTAVAIL | -EACCES
//            | -EMFILE, -ENFILE | another -errno
VOLT_API int volt_udp_open(const volt_addr *a_or_null, const volt_udp_options *options_or_null);
// Joins or leaves a multicast group, on an interface by its number; 0: that of the route to the
// group. source NULL: all sources.
//   returns: 0 | -EADDRINUSE if it is joined already | -ENODEV | another -errno
VOLT_API int volt_mcast_join(int fd, const volt_addr *group, unsigned if_index,
                             const volt_addr *source_or_null);
VOLT_API int volt_mcast_leave(int fd, const volt_addr *group, unsigned if_index,
                              const volt_addr *source_or_null);
// Of multicast that is sent: the interface, 0: that of the route; the number of hops; and whether
// this host receives it as well.
//   returns: 0 | -errno
VOLT_API int volt_set_mcast(int fd, unsigned if_index, int hops, int is_looped);
// Of all that is sent: the number of hops; DSCP and ECN, as the byte of the IP header.
//   returns: 0 | -errno
VOLT_API int volt_set_ttl(int fd, int hops);
VOLT_API int volt_set_tos(int fd, int tos);
// Reads the control data of a received message, if the socket was opened with .has_info.
// `local` is the address to answer from: for a multicast or broadcast that of the interface, and
// missing where the kernel does not tell it (IPv6 multicast).
VOLT_API void volt_msg_info_get(const struct msghdr *m, volt_msg_info *out);
// Sets the control data of a message to be sent, as far as `has` says: the address that it comes
// from, its interface, TOS, TTL, and SEGMENT for a joined message. *room holds it.
//   returns: 0 | -EINVAL if `local` is no IP address
VOLT_API int volt_msg_info_put(struct msghdr *m, volt_msg_control *room, const volt_msg_info *info);
// Makes the properties of an answer: it comes from the address that the question came to, and
// through its interface if that address means nothing without it.
VOLT_API void volt_msg_info_reply(const volt_msg_info *received, volt_msg_info *out);
// Sends a buffer as datagrams of `segment` bytes each, the last one possibly shorter: with
// UDP_SEGMENT up to 64 by one system call, else with sendmmsg(2). to NULL: the connected peer.
// Waits until one datagram is sent, and sends as many as are possible at once. A buffer of 0 bytes
// is one empty datagram.
//   returns: the number of bytes, a multiple of `segment` or all | -EINVAL if `segment` is 0 |
//            -EMSGSIZE if it is too long for a datagram | as volt_sendto
VOLT_API VOLT_POLL volt_send_segments(volt_cx *cx, int fd, const void *buf, size_t len,
                                      size_t segment, const volt_addr *to_or_null);
// Receives datagrams of one sender, as many as the kernel has joined: all have *segment bytes,
// which is at least 1, the last one possibly fewer. Needs .is_joined of volt_udp_options, and room
// for 64 KiB; otherwise one datagram is received.
//   returns: the number of bytes | -EMSGSIZE if the end of them did not fit | as volt_recvfrom
VOLT_API VOLT_POLL volt_recv_segments(volt_cx *cx, int fd, void *buf, size_t len, size_t *segment,
                                      volt_addr *from_or_null, volt_msg_info *info_or_null);
#endif // VOLT_NO_UDP

#ifndef VOLT_NO_STREAM
// ---- streams
// A descriptor as a stream. `end` shuts a socket down for writing, and does nothing for another
// file.
//   where  : any thread; may stand in an await, as it depends on its argument alone
VOLT_API volt_stream volt_stream_of(int fd);
VOLT_API VOLT_POLL volt_stream_read(volt_cx *cx, volt_stream s, void *buf, size_t len);
VOLT_API VOLT_POLL volt_stream_write(volt_cx *cx, volt_stream s, const void *buf, size_t len);
VOLT_API VOLT_POLL volt_stream_end(volt_cx *cx, volt_stream s);
// Waits until a read would not wait.
//   returns: 0, rarely also without need | -EOPNOTSUPP if the stream has no such wait | -errno
VOLT_API VOLT_POLL volt_stream_ready(volt_cx *cx, volt_stream s);

// Reads a stream through a buffer of the caller's, which is the only memory. policy: VOLT_LONG_...
// A call that is cancelled or has a time limit loses nothing: the next one goes on. A reader is for
// one task at a time, and for one wait.
//   where  : in the task that uses it, since a spawn copies the state, but not this address
VOLT_API void volt_reader_init(volt_reader *r, volt_stream in, void *buf, size_t cap, int policy);
// Waits until at least n bytes are in the buffer. *out is all that is there, until the next wait on
// this reader.
//   returns: the number of bytes | less than n at the end of the stream | -EMSGSIZE if n is above
//            the size of the buffer | the errors of the stream
VOLT_API VOLT_POLL volt_fill(volt_cx *cx, volt_reader *r, size_t n, volt_span *out);
// The bytes in the buffer; and: the first n of them have been used, and are dropped.
VOLT_API volt_span volt_buffered(const volt_reader *r);
VOLT_API void volt_consume(volt_reader *r, size_t n);
// Waits until the next read would not wait. Ends at once if there are bytes in the buffer.
//   returns: as volt_stream_ready
VOLT_API VOLT_POLL volt_reader_ready(volt_cx *cx, volt_reader *r);
// Reads as volt_read, first from the buffer.
VOLT_API VOLT_POLL volt_reader_read(volt_cx *cx, volt_reader *r, void *buf, size_t len);
// Reads all of `len` bytes. After an error, volt_reader_moved bytes are in `buf`.
//   returns: len | -EPIPE if the stream ended before | the errors of the stream
VOLT_API VOLT_POLL volt_reader_read_exact(volt_cx *cx, volt_reader *r, void *buf, size_t len);
// Reads up to the end of the stream, as volt_reader_read_exact.
//   returns: the number of bytes | -EMSGSIZE if there are more than `cap`
VOLT_API VOLT_POLL volt_read_to_end(volt_cx *cx, volt_reader *r, void *buf, size_t cap);
VOLT_API size_t volt_reader_moved(const volt_reader *r);
// Takes the next line, without its "\n" or "\r\n"; or what is before the next delimiter of n bytes.
// *out is valid until the next wait on this reader. The longest line is that which fits into the
// buffer with its end.
//   returns: 1 | 2: a part of a line, since the stream has ended behind it, or with VOLT_LONG_CUT a
//            piece | 0 at the end of the stream | -EMSGSIZE: too long, see the policies | the
//            errors of the stream | `try_`: -EAGAIN: the buffer has no whole line
VOLT_API VOLT_POLL volt_read_line(volt_cx *cx, volt_reader *r, volt_span *out);
VOLT_API VOLT__MUST int volt_try_read_line(volt_reader *r, volt_span *out);
VOLT_API VOLT_POLL volt_read_until(volt_cx *cx, volt_reader *r, const void *delimiter, size_t n,
                                   volt_span *out);
VOLT_API VOLT__MUST int volt_try_read_until(volt_reader *r, const void *delimiter, size_t n,
                                            volt_span *out);
// Takes the next record, which must fit into the buffer with its header. *f is read at each poll.
//   returns: 1 | 0 at the end of the stream, between two records | -EPIPE if it ends inside one |
//            -EMSGSIZE if the record is too long | -EBADMSG if its length is negative | -EINVAL for
//            an impossible format | the errors of the stream | `try_`: -EAGAIN
VOLT_API VOLT_POLL volt_read_record(volt_cx *cx, volt_reader *r, const volt_record_format *f,
                                    volt_span *out);
VOLT_API VOLT__MUST int volt_try_read_record(volt_reader *r, const volt_record_format *f,
                                             volt_span *out);
// The reader as a stream: its buffer first, then what it reads from. For volt_copy and volt_relay
// behind a head that was read by lines.
VOLT_API volt_stream volt_reader_stream(volt_reader *r);

// Writes to a stream through a buffer of the caller's. A writer is for one task at a time: an arm
// may put something while another one waits in volt_flush, which then writes that, too.
//   where  : as volt_reader_init
VOLT_API void volt_writer_init(volt_writer *w, volt_stream out, void *buf, size_t cap);
// Put something into the buffer, all of it or nothing, without a wait. volt_putf is as printf, and
// volt_vputf as vprintf.
//   where  : in the task that uses the writer
//   returns: 0 | -ENOBUFS: no room now, await volt_flush | -EMSGSIZE: it never fits | the error
//            of the stream, once a write has failed
VOLT_API VOLT__MUST int volt_put(volt_writer *w, const void *p, size_t n);
VOLT_API VOLT__MUST int volt_putv(volt_writer *w, const struct iovec *iov, int n);
VOLT_API VOLT__MUST int volt_putf(volt_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
VOLT_API VOLT__MUST int volt_vputf(volt_writer *w, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
// Puts a record with its header, of which only the length is set, unless .keeps_header.
//   returns: as volt_put | -EMSGSIZE also if the length is above .most or does not fit into its
//            field | -EINVAL for an impossible format
VOLT_API VOLT__MUST int volt_put_record(volt_writer *w, const volt_record_format *f,
                                        const struct iovec *iov, int n);
// The bytes that are not written yet, and those for which there is room now.
VOLT_API size_t volt_unflushed(const volt_writer *w);
VOLT_API size_t volt_writer_room(const volt_writer *w);
// Puts n bytes, of any number, and writes whenever the buffer is full.
//   returns: 0 | the errors of the stream, or of a cancellation: volt_writer_moved bytes were put
VOLT_API VOLT_POLL volt_put_wait(volt_cx *cx, volt_writer *w, const void *p, size_t n);
VOLT_API size_t volt_writer_moved(const volt_writer *w);
// Writes all that is in the buffer. The rest stays in it after an error or a cancellation.
//   returns: 0 | the errors of the stream, and that of the first failed write ever after
VOLT_API VOLT_POLL volt_flush(volt_cx *cx, volt_writer *w);

// Prepares a copy from one stream to another: by splice(2) if both are descriptors that can, else
// through the buffer; NULL: through 16 KiB that are allocated while volt_copy runs.
//   where  : as volt_reader_init
VOLT_API void volt_copier_init(volt_copier *c, volt_stream from, volt_stream to, void *buf_or_null,
                               size_t cap);
#define VOLT_ALL UINT64_MAX
// Copies until the first stream ends, or `at_most` further bytes are written. After a cancellation
// or an error, bytes may be on their way in *c: the next call begins with them.
//   returns: 0 | the error of either stream: see volt_copy_failed_at | -ENOMEM
//   memory : a pipe while bytes are on their way, of up to 1 MiB; a runtime has at most 16 larger
//            than 64 KiB. See also volt_copier_init
VOLT_API VOLT_POLL volt_copy(volt_cx *cx, volt_copier *c, uint64_t at_most);
// The number of bytes that were written so far.
//   where  : in the task that copies, or after the copy has returned
VOLT_API uint64_t volt_copied(const volt_copier *c);
// The side on which the last volt_copy has failed: VOLT_IN, VOLT_OUT, or 0.
VOLT_API int volt_copy_failed_at(const volt_copier *c);
// Drops the bytes that are on their way, and gives back what *c has. Must follow the last
// volt_copy.
VOLT_API void volt_copier_close(volt_cx *cx, volt_copier *c);
// Prepares a relay: copies between two streams, both ways.
VOLT_API void volt_relayer_init(volt_relayer *r, volt_stream a, volt_stream b, volt_time idle);
// Copies both ways until both directions have ended; the end of one is passed on. Ends as well if
// no byte moves in either direction for `idle`, or a direction fails. Closes neither stream; after
// an error the caller should reset both, or a cut stream would look complete.
//   returns: 0 | -ETIMEDOUT, with volt_relay_is_idle | the first error
//   memory : as volt_copy, for each direction
VOLT_API VOLT_POLL volt_relay(volt_cx *cx, volt_relayer *r);
// Returns 1 if the relay has ended because no byte has moved.
VOLT_API int volt_relay_is_idle(const volt_relayer *r);
// The copiers of the directions: 0, from a to b; 1, from b to a.
VOLT_API const volt_copier *volt_relay_way(const volt_relayer *r, int way);
// Sends up to `len` bytes of a file, from *offset on, which advances by the result. A read of the
// disk blocks the worker.
//   returns: the number of bytes | 0 at the end of the file | -errno
VOLT_API VOLT_POLL volt_sendfile(volt_cx *cx, int fd, int file, int64_t *offset, size_t len);
// Closes a connection so that the peer gets a reset, not an end: for one that was cut.
VOLT_API void volt_close_reset(volt_cx *cx, int fd);
#endif

#ifndef VOLT_NO_SIGNAL
// ---- signals
// Blocks the signals in the calling thread, and opens a descriptor that reports them. Call it in
// the main thread before any other thread starts, so that these inherit the mask: a signal that
// some thread does not block takes its default action there. It reports signals that are sent to
// the process, not to a single thread. Signals of one number that are pending at once are one,
// unless they are real-time signals. volt_close ends it, and leaves the mask as it is.
//   where  : any thread
//   returns: a descriptor | -EINVAL if `n` is 0, or for SIGKILL, SIGSTOP, a signal of a fault, or
//            no signal | -EMFILE, -ENFILE
VOLT_API int volt_signals_open(const int *list, size_t n);
// Waits for the next signal. A wait that is cancelled, or loses a select, has taken none.
//   returns: its number | -EBADF if the descriptor is closed
VOLT_API VOLT_POLL volt_signals_next(volt_cx *cx, int fd, volt_signal_info *out_or_null);
#endif

#ifndef VOLT_NO_PROCESS
// ---- processes
// No handler of SIGCHLD and no waitpid(-1): volt waits for its own children only. Each started
// process ends in one of volt_process_wait and volt_process_end; until then it is a child of this
// program, as a zombie at least.

// Starts a process, by a pool thread, as an async function with `p` as its state. The child begins
// with an empty signal mask, and with the default action of each signal.
//   returns: 0, also in a scope that is cancelled during the start | -ENOENT, -EACCES, -ENOEXEC, or
//            another error of exec(2) | the errors of chdir(2), dup2(2), setsid(2), setresuid(2) |
//            -EINVAL without an argv, or for a uid or gid of (unsigned)-1 | -EMFILE, -ENFILE |
//            -EAGAIN | -ENOMEM | the errors of volt_blocking. After an error there is no process:
//            in, out and err are -1
//   memory : one descriptor until the end is collected, and one for each pipe
VOLT_API VOLT_POLL volt_process_start(volt_cx *cx, volt_process *p,
                                      const volt_process_options *options);
// Waits for its end, and collects it. May be cancelled and repeated.
//   returns: 0 with the end in *out | -ECHILD if there is no process, or another part of the
//            program has collected it
VOLT_API VOLT_POLL volt_process_wait(volt_cx *cx, volt_process *p, volt_exit_status *out_or_null);
// Sends a signal to the process, never to another one that has got its number.
//   where  : any thread
//   returns: 0 | -ESRCH if it has ended, or is not started | -EPERM | -EINVAL
VOLT_API int volt_process_signal(volt_process *p, int signal);
// Ends the process, and collects it: SIGTERM and SIGCONT, then SIGKILL after `grace`, or as soon as
// the scope is cancelled; grace 0: SIGKILL at once. Returns only when the process is collected. The
// signals go to the process alone; with .ends_group, what is left of its group gets SIGKILL then.
//   returns: 0 with the end in *out | -ECHILD
VOLT_API VOLT_POLL volt_process_end(volt_cx *cx, volt_process *p, volt_time grace,
                                    volt_exit_status *out_or_null);
// Makes *p the process of a child that another library has started, and does not wait for; for
// volt_process_wait, _signal and _end. *p is zeroed, or has no process; no other call may use it at
// the same time.
//   returns: 0 | -ECHILD if `pid` is no child of this program | -EBUSY if *p has a process
VOLT_API int volt_process_adopt(volt_process *p, int pid);
// Runs a process to its end, in a group of its own, and keeps its output. If that does not fit, or
// if it is cancelled, the process is ended as by volt_process_end, with c->grace.
//   returns: 0, also if the process has failed: see c->end | -EMSGSIZE if out or err was full |
//            -ECANCELED | the errors of volt_process_start
VOLT_API VOLT_POLL volt_capture_run(volt_cx *cx, volt_capture *c,
                                    const volt_process_options *options);
// Closes those ends of the pipes that are left. A program that has passed one on sets it to -1.
VOLT_API void volt_process_close(volt_cx *cx, volt_process *p);
// Writes "status 1" or "SIGSEGV, core dumped", with a terminating 0.
//   where  : any thread
//   returns: the length without the 0 | -ENOSPC
VOLT_API int volt_exit_text(const volt_exit_status *e, char *buf, size_t len);
#endif

#ifndef VOLT_NO_UNIX
// ---- unix sockets, pipes, terminals
// Opens a unix datagram socket with an address; NULL: without one. Of the options, those of a unix
// socket count, but for the type.
//   returns: a descriptor, non-blocking and close-on-exec | as volt_listen_addr
VOLT_API int volt_unix_open(const volt_addr *a_or_null, const volt_listen_options *options_or_null);
// Removes the path of a unix socket of this process, before it is closed. Does nothing for other
// sockets.
//   returns: 0 | -ENOENT if the path is gone, or another file | another -errno
VOLT_API int volt_unix_unlink(int fd);
// Opens two connected unix sockets of a type, or a pipe: fd[0] is its end that reads.
//   returns: 0 with two descriptors, non-blocking and close-on-exec | -EMFILE, -ENFILE | another
//            -errno
VOLT_API int volt_socketpair(int type, int fd[2]);
VOLT_API int volt_pipe(int fd[2]);
// Sends `len` bytes, at least one, with n descriptors, at most 253, through a unix socket. They
// stay open here. All of them are sent with the first byte: if the result is below `len`, which
// happens on a stream, the rest is for volt_write_all.
//   returns: the number of bytes, 1 or more | -EINVAL if `len` is 0 or n above 253 | -EBADF for a
//            descriptor that is not open | -ENOMEM for more than 252 with musl on 64 bits | another
//            -errno. After an error nothing was sent
VOLT_API VOLT_POLL volt_send_fds(volt_cx *cx, int fd, const void *buf, size_t len, const int *fds,
                                 unsigned n);
// Receives data, and up to `cap` descriptors that came with it, which may be 0. They are
// close-on-exec, and share their description with the sender: volt_read makes a pipe non-blocking
// for both. Surplus ones are closed, so a peer cannot fill the table of this process.
//   returns: the number of bytes, also if descriptors were surplus or a message was cut: see *out,
//            which each result sets | 0 at the end of a stream | -errno, and then out->n is 0
//   memory : the received descriptors are the caller's
VOLT_API VOLT_POLL volt_recv_fds(volt_cx *cx, int fd, void *buf, size_t len, int *fds, unsigned cap,
                                 volt_fds_info *out);
// The process at the other end of a unix socket, as of its connect or listen call.
//   returns: 0 | -errno
VOLT_API int volt_peer_cred(int fd, volt_cred *out);
// The same process as a pidfd: it never means another one.
//   returns: a descriptor | -ENOPROTOOPT before Linux 6.5 | another -errno
VOLT_API int volt_peer_pidfd(int fd);
// Sets a terminal to raw mode, and keeps its state in *t; or puts that state back, once. Both block
// until the output that is pending has left: tcflush(fd, TCOFLUSH) drops it.
//   where  : any thread; volt_tty_restore also in a signal handler
//   returns: volt_tty_raw 0 | -ENOTTY | another -errno
VOLT_API int volt_tty_raw(volt_tty *t, int fd);
VOLT_API void volt_tty_restore(volt_tty *t);
// Opens a serial line in raw mode, for volt_read and volt_write. Keeps its settings as they were
// before in *saved, for volt_tty_restore, which must come before the close. A line that was opened
// with .is_exclusive stays so for other users until then, as long as any process has it open.
// Blocks as open(2) of the device does.
//   returns: a descriptor, non-blocking and close-on-exec | -EBUSY if another process has it
//            exclusively | -EINVAL for a speed or a format that the driver lacks | -ENOTTY |
//            -ENOENT, or another -errno
VOLT_API int volt_serial_open(const char *path, const volt_serial_options *options_or_null,
                              volt_tty *saved_or_null);
#endif // VOLT_NO_UNIX

// Opens a poll set: a level-triggered set of descriptors that another library reads and writes.
// The struct must not be copied.
//   where  : any thread, one at a time
//   returns: 0 | -EMFILE, -ENFILE | -ENOMEM
//   memory : one descriptor, until volt_pollset_close
VOLT_API int volt_pollset_open(volt_pollset *p);
// Adds a descriptor, or changes the events to wait for, with effect on a wait in progress. events
// 0: removes it, which is no error if it was closed already.
//   returns: 0 | -EINVAL if the set is not open | -EBADF | -EPERM: a file on a disk | -ENOMEM |
//            -ENOSPC
VOLT_API int volt_pollset_set(volt_pollset *p, int fd, uint32_t events);
// Waits for events, and stores up to `cap` of them in `ev`, at most 64.
//   returns: the number of events | -EINVAL if the set is not open or `cap` is 0
VOLT_API VOLT_POLL volt_pollset_wait(volt_cx *cx, volt_pollset *p, volt_pollev *ev, size_t cap);
// The same for a thread. It must have returned before the set is closed.
//   where  : plain thread
//   returns: as volt_pollset_wait | -ETIMEDOUT | -EDEADLK on a worker
VOLT_API VOLT__MUST int volt_pollset_wait_sync(volt_pollset *p, volt_pollev *ev, size_t cap,
                                               volt_time at_most);
// Closes a poll set. Tasks that wait for it get -EBADF; the struct must stay until their waits have
// returned. Does nothing if the set is not open.
VOLT_API void volt_pollset_close(volt_cx *cx, volt_pollset *p);
#endif // VOLT_NO_IO

#ifdef __cplusplus
} // extern "C"

//==================================================================================================
// >>cxx  spawning from C++
//==================================================================================================
// VOLT_SPAWN, VOLT_RT_SPAWN and VOLT_GROUP_SPAWN for C++, with the contracts of >>api. The state is
// passed as an lvalue or a temporary. Its type must be a plain struct (trivially copyable, standard
// layout) with `volt_frame frame` as its first member, and with an alignment of at most
// VOLT_STATE_ALIGN; anything else does not compile. A task reaches C++ objects by pointers in its
// state. The header ends behind this section; the implementation, if requested, follows.
#  include <type_traits>
#  define VOLT__CXX_STATE(T_)                                                                      \
      static_assert(std::is_trivially_copyable<T_>::value && std::is_standard_layout<T_>::value,   \
                    "task state: a plain struct; reach C++ objects by pointer");                   \
      static_assert(alignof(T_) <= VOLT_STATE_ALIGN, "task state: aligned too far");               \
      static_assert(offsetof(T_, frame) == 0, "`volt_frame frame` must be the first member")
template <class T>
VOLT__MUST int volt__spawn_cxx(volt_cx *cx, volt_handle *h, volt_fn *fn, const char *site,
                               const T &s) {
    VOLT__CXX_STATE(T);
    return volt_spawn_at(cx, h, fn, &s, sizeof s, site);
}
template <class T>
VOLT__MUST int volt__spawn_cxx(volt_rt *rt, volt_handle *h, volt_fn *fn, const char *site,
                               const T &s) {
    VOLT__CXX_STATE(T);
    return volt_rt_spawn_at(rt, h, fn, &s, sizeof s, site);
}
template <class T>
VOLT__MUST int volt__spawn_cxx(volt_cx *cx, volt_group *g, volt_fn *fn, const char *site,
                               const T &s) {
    VOLT__CXX_STATE(T);
    return volt__group_spawn(cx, g, fn, &s, sizeof s, alignof(T), site);
}
#  define VOLT_SPAWN(cx_, h_, fn_, ...) \
      volt__spawn_cxx((cx_), static_cast<volt_handle *>(h_), (fn_), VOLT__SPAWN_SITE(fn_), \
                      __VA_ARGS__)
#  define VOLT_RT_SPAWN(rt_, h_, fn_, ...) \
      volt__spawn_cxx((rt_), static_cast<volt_handle *>(h_), (fn_), VOLT__SPAWN_SITE(fn_), \
                      __VA_ARGS__)
#  define VOLT_GROUP_SPAWN(cx_, g_, fn_, ...) \
      volt__spawn_cxx((cx_), (g_), (fn_), VOLT__SPAWN_SITE(fn_), __VA_ARGS__)
#endif
#endif // VOLT_H

#if defined(VOLT_IMPLEMENTATION) && !defined(VOLT__IMPLEMENTED)
#define VOLT__IMPLEMENTED
#if defined(__GLIBC__) && !defined(__USE_GNU)
#  error "define VOLT_IMPLEMENTATION before the first #include of its file, or use -D_GNU_SOURCE"
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#if !defined(VOLT_USDT) && defined(__has_include)
#  if __has_include(<sys/sdt.h>)
#    define VOLT_USDT 1
#  endif
#endif
#ifndef VOLT_USDT
#  define VOLT_USDT 0
#endif
#if VOLT_USDT
#  include <sys/sdt.h>
#endif
#ifndef VOLT_SINGLE_THREAD
#  include <pthread.h>
#  include <sched.h>
#endif
#ifndef VOLT_NO_IO
#  include <arpa/inet.h>
#  include <net/if.h>
#  include <sys/signalfd.h>
#  include <sys/wait.h>
#  include <netdb.h>
#  include <netinet/in.h>
#  include <netinet/tcp.h>
#  include <sys/file.h>
#  include <sys/ioctl.h>
#  include <sys/sendfile.h>
#  include <sys/socket.h>
#  include <sys/uio.h>
#  include <sys/un.h>
#  include <termios.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

//==================================================================================================
// >>terms  the vocabulary of the implementation
//==================================================================================================
// The sections of the implementation, its terms, and the notation of its comments.
// Each section uses only those above it; the exceptions are prototypes marked `below`.
//   >>seam       the system: kernel, threads, clock, memory; tests replace it
//   >>tunables   bounds, bit widths and thresholds; tests shrink them
//   >>atomics    atomic operations named by their memory order, and the ledger of their pairs
//   >>base       misuse, bits, time, random numbers, error texts
//   >>locks      futex lock, asymmetric fence, biased lock, parker
//   >>slab       slabs for tasks: one heap per worker, remote frees pushed back to the owner
//   >>queues     node lists, task chains, injector, overflow queue, ring
//   >>task       the task word: one transition function per event
//   >>node       nodes of waits: their states change under the lock of source_
//   >>timers     hierarchical wheel, one per worker
//   >>fds        the table of descriptors
//   >>kinds      what kind of file a descriptor is
//   >>reactor    epoll instances, their eventfds and timers
//   >>idle       which workers sleep, which search
//   >>pool       threads for blocking calls
//   >>rt         what a runtime and a worker are
//   >>log        log lines, and misuse that names the line of the task that is being polled
//   >>trace      what happened: probes, rings, histograms, the tracer
//   >>schedule   where a woken task goes: placement and the queues of a worker
//   >>shutdown   shutdown, step by step
//   >>finish     the end of a task: join word, group, completion
//   >>poll       one poll of one task
//   >>watchdog   a one-shot timer that finds stuck workers
//   >>worker     the loop of a worker: maintenance, events, search, park
//   >>handoff    a worker whose thread blocks goes to another thread
//   >>start      starting workers
//   >>guest      worker 0 carried by the application's own thread
//   >>cpus       the CPUs that a runtime may use
//   >>runtime    configuration, creation
//   >>spawn      spawning, handles, wakers
//   >>leaf       the contract of a leaf, and the wait that all primitives share
//   >>time       sleep, interval, join, time limits
//   >>scopes     shields, tokens, groups
//   >>sema       mutex, rwlock, semaphore, once
//   >>waitword   event, wait group, tracker; notify, barrier, condition variable
//   >>chan       the core of channels: buffer, grants, rendezvous
//   >>bounded    bounded channels: sends, receives, reservations, closing
//   >>oneshot    oneshot and queue
//   >>broadcast  broadcast and watch
//   >>blocking   blocking calls, on a pool thread or in place
//   >>files      file operations, on a pool thread
//   >>sockets    addresses, options, opening
//   >>io         reads, writes, calls of the program
//   >>messages   messages on sockets, datagrams
//   >>unix       unix sockets, pipes, terminals
//   >>net        accept, connect, closing, readiness, poll sets
//   >>streams    streams, readers, writers
//   >>combine    select and join over arms, join over arrays
//   >>copy       copying between streams, files to sockets
//   >>names      host names: lookup and connection
//   >>process    signals, child processes
//   >>inspect    counters, dump
//   >>export     the trace as JSON for Chrome's viewer and Perfetto; histograms, health
//   >>public     run, create, block_on, shutdown, destroy
//
// ---- terms: each has one meaning, in names and in comments
//   task           An async function and its state, in one slot of a slab. Its word holds flags and
//                  references. Each call of the function is a poll, made by the worker that runs
//                  the task: its runner.
//   private task   A task that only its runner can reach. Its word is updated by plain stores.
//   frame          The first member of each state struct. It stores the line to resume at and the
//                  kind of the current await. Its node serves the leaf that the function awaits.
//   node           One wait: the link in a list, its source, and the task or thread to wake.
//   fire           To end a wait: the source unlinks the node and sets its state, under the lock.
//                  Its task is enqueued, or its thread unparked, after the unlock.
//   leaf           An awaited operation that is not a child function, such as a read or a sleep.
//                  Each that completes costs one unit of the budget that a poll starts with.
//   wait op        The two functions of a wait on a lock or channel. `attempt` takes the resource
//                  or links the node; `abandon` undoes a wait that is cancelled.
//   grant          A permit, slot or message that is reserved for a waiter before the waiter runs.
//                  A cancelled waiter passes its grant on.
//   permit         The unit that a semaphore counts. Mutex, rwlock and once are built on `sema`.
//   waitword       A word with a list of waiters, which wait until some of its bits have a given
//                  value.
//   notify         The primitive volt_notify. Workers are woken by volt__wake_worker instead.
//   wake list      The waiters that one event fires: collected under a lock, woken after it.
//   arm            One branch of a select or join.
//   shield         A bounded section of a frame in which awaits ignore cancellation. The shield
//                  depth of a frame is the number of shields around it.
//   cancel level   The number of shield depths that are cancelled. An await is cancelled if its
//                  shield depth is below the cancel level.
//   wrapper        A timer or token around an inner poll, which it ends by raising the cancel
//                  level.
//   scope          A shield or a group that is open in a frame. (In the manual a scope is the
//                  awaits that one cancellation reaches: those below a cancel level.)
//   token          A stop flag with waiters, hooks and child tokens. Each tree has one lock.
//   group          The owner of child tasks. A task does not end before its groups are empty.
//   worker         The data of one scheduler: ring, wheel, reactor, heap. One thread runs it at a
//                  time: its carrier, which holds the carrier lock, a ticket lock.
//   handoff        The transfer of a worker to another carrier while its own thread blocks.
//   guest          A worker that the application runs in steps, inside a loop of its own.
//   ring           The bounded FIFO of a worker's runnable tasks, from which other workers steal.
//   thief          A worker that takes tasks of another one that makes progress. A rescuer takes
//                  those of a worker that is stuck.
//   steal floor    The ring length up to which thieves take nothing. The floor VOLT__NO_STEAL also
//                  protects the overflow queue.
//   LIFO slot      Holds the task that a poll of the worker has spawned, or woken alone, last. That
//                  task runs next, and thieves cannot take it.
//   overflow queue Batches of tasks that did not fit into the ring. The owner runs the newest batch
//                  first; thieves take the oldest.
//   injector       The shared queue of tasks that come from outside the workers, or that no ring
//                  has room for. An inbox is the same for one worker, with .placement.
//   claim          Exclusive possession won by one RMW: of tasks in a ring, a parked worker, the
//                  watchdog's timer, or a select that a rendezvous completes.
//   pusher         The thread that has put a task into a queue, and may have to wake a worker.
//   searching      The state of a worker that looks for tasks to steal.
//   parked         The state of a worker that sleeps in its reactor. Its bit in volt__idle is set.
//   event poll     One pass of a worker over its reactor and its wheel.
//   watchdog       A timer that runs while any worker is awake. A worker whose count of event polls
//                  stands still between two scans is stuck, and is rescued: others take its work.
//   parker         A futex word on which one thread sleeps. A worker is unparked by its eventfd.
//   pin            A count that keeps a runtime from being freed, or a descriptor from being
//                  closed, during a call.
//   generation     The number of times that a descriptor number was retired: closed, released, or
//                  found to be another file's. A wait from an older generation is stale.
//   biased lock    A lock that its owner takes without an RMW. Others revoke it by membarrier(2).
//   slab, heap     64 KiB of slots of one size, or one larger slot; the slabs of one worker. A
//                  remote batch collects freed slots that belong to another worker's heap.
//   walker         A thread that visits every task through the slabs: a dump, or the sweep of a
//                  shutdown.
//   detached job   A blocking call whose wait may end first. The pool thread then frees the job.
//
// ---- notation
// A comment on a shared field says which threads access the field:
//   owner            one thread at a time, such as the carrier of a worker
//   once             written before the object is shared, and only read from then on
//   under lock       by the holder of the lock
//   W x, R y [Q1]    written by x, read by y; the tag is a row of the ledger in >>atomics
//   any, rmw [Q1]    by any thread, changed by atomic read-modify-writes (RMWs) only
//   (hint)           read without order: the value may be stale when it is used
// At an operation:
//   rlx: reason      why a relaxed access needs no order
//   LAST TOUCH       the object may be freed from here on, so nothing may access it afterwards
//
// ---- where an addition touches the code, from the public part downwards
//   config field     At the end of volt_config, because of .size, with its comment; its default and
//                    range in volt__config_resolve (>>runtime), which alone sets defaults; a
//                    default that is a number in >>tunables; the section that reads cfg; the field
//                    in effective_config_shows_given_values_and_defaults (tests/api/public.c).
//   operation on     Its contract in >>api; volt__op, volt__io, the switches and the steps that
//   a descriptor     >>io lists. It waits as one of the kinds of leaf that exist.
//   leaf             Its contract in >>api; the steps of >>leaf; a new kind is a line of
//                    VOLT__LEAVES and a row of examples/gdb/volt.py; state between polls is a
//                    member of key_ (>>types).
//   lock or channel  Type, initialiser and "zero-valid" in >>types; the awaited, try_ and `_sync`
//                    forms in >>api; a wait op with attempt and abandon (>>waitword is the
//                    pattern); a line of the ledger for each access without the lock; its promises
//                    and their tests in the table of >>sema.
//   each of them     The manual: results, threads, ownership, choosing a primitive; README.md of
//                    examples for the recipe; a model-checked test if it is lock-free; the tests of
//                    its errors (tests/exhaustive/answers.c, tests/fault).
//==================================================================================================
// >>seam  the system: kernel, threads, clock, memory; tests replace it
//==================================================================================================
// The boundary between volt and the system. No other section calls the kernel, or a function of the
// C library that can fail, except by VOLT_SYS or through this section (tests/static/rules.sh checks
// that). Tests define the macros below to replace the system by a simulated one, by one that
// injects faults, or by a model checker.
//
// The only variable is the current worker of each thread, and no function takes a lock: any thread
// may call any of them. Where the kernel lacks a call or a flag, a function uses an older one. If
// there is no older one (membarrier, the fork word), the function fails, and its caller does
// without. So no other section depends on the version of the kernel.
#ifndef VOLT_SYS // a system call, or a libc call that can fail: VOLT_SYS(read, fd, buf, len)
#  define VOLT_SYS(name_, ...) name_(__VA_ARGS__)
#endif
#if !defined(VOLT_THREAD_CREATE) && !defined(VOLT_SINGLE_THREAD)
#  define VOLT_THREAD_CREATE(thread_, attr_, fn_, arg_) pthread_create(thread_, attr_, fn_, arg_)
#  define VOLT_THREAD_JOIN(thread_) pthread_join(thread_, NULL)
#endif
#ifndef VOLT_TLS_GET // the worker that the calling thread carries, or NULL
static __thread volt__worker *volt__tls;
#  define VOLT_TLS_GET() volt__tls
#  define VOLT_TLS_SET(w_) (volt__tls = (w_))
#endif
#ifndef VOLT_NOW_NS
#  define VOLT_NOW_NS() volt__sys_now()
#endif
#ifndef VOLT_FUTEX_WAIT // 0 or -errno; deadline: an absolute CLOCK_MONOTONIC time or VOLT_NEVER
#  define VOLT_FUTEX_WAIT(word_, expect_, deadline_) volt__sys_futex_wait(word_, expect_, deadline_)
#  define VOLT_FUTEX_WAKE(word_, n_) volt__sys_futex_wake(word_, n_)
#endif
#ifndef VOLT_MEMBARRIER // 0 or -errno
#  define VOLT_MEMBARRIER(command_) volt__sys_membarrier(command_)
#endif
#ifndef VOLT_EPOLL_WAIT // the number of events, or -errno; timeout in ns, < 0: no limit
#  define VOLT_EPOLL_WAIT(ep_, ev_, n_, timeout_) volt__sys_epoll_wait(ep_, ev_, n_, timeout_)
#endif
#ifndef VOLT_FORK_WORD // address of a word: 1, or 0 in a forked child. NULL: compare VOLT_GETPID
#  define VOLT_FORK_WORD() volt__sys_fork_word()
#  define VOLT_GETPID() getpid()
#endif
#ifndef VOLT_IS_MAPPED // whether these bytes are mapped and readable
#  define VOLT_IS_MAPPED(p_, n_) volt__sys_is_mapped(p_, n_)
#endif
#ifndef VOLT_RANDOM // 64 bits that need not be secret
#  define VOLT_RANDOM() volt__sys_random()
#endif
#ifndef VOLT_PANIC // does not return
#  define VOLT_PANIC(text_) volt__sys_panic(text_)
#endif
#ifndef VOLT_ASSERT // an invariant of volt, or misuse; only debug builds check it
#  define VOLT_ASSERT(c_) VOLT__EXPECT(c_, "assertion failed: " #c_)
#endif
#ifndef VOLT_CPU_RELAX
#  if defined(__x86_64__) || defined(__i386__)
#    define VOLT_CPU_RELAX() __builtin_ia32_pause()
#  elif defined(__aarch64__) // `yield` does not delay there, `isb` does
#    define VOLT_CPU_RELAX() __asm__ __volatile__("isb" ::: "memory")
#  elif defined(__arm__) && __ARM_ARCH >= 7
#    define VOLT_CPU_RELAX() __asm__ __volatile__("yield")
#  else
#    define VOLT_CPU_RELAX() __asm__ __volatile__("" ::: "memory")
#  endif
#endif

#define VOLT__ALIGN(n_) __attribute__((aligned(n_)))
#define VOLT__HOT inline __attribute__((always_inline)) // for code that runs once per poll
#define VOLT__LIKELY(c_) __builtin_expect(!!(c_), 1)
#define VOLT__UNLIKELY(c_) __builtin_expect(!!(c_), 0)
#define VOLT__CONTAINER(type_, member_, p_) \
    ((type_ *)(void *)((char *)(p_) - offsetof(type_, member_)))

static int64_t volt__sys_now(void) {
    struct timespec t;
    VOLT_SYS(clock_gettime, CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
// Returns 1 if the error may mean that the kernel or a seccomp filter does not support a call or a
// flag. The caller then falls back to an older call.
static int volt__sys_is_unsupported(int error) {
    return error == ENOSYS || error == EPERM || error == EINVAL;
}
// Makes fd, the result of a call without such flags, non-blocking and close-on-exec. Returns fd. If
// fd < 0, returns -errno of that call. If an fcntl fails, closes fd and returns its -errno.
static int volt__sys_set_flags(int fd) {
    int mode = fd < 0 ? -1 : VOLT_SYS(fcntl, fd, F_GETFL);
    if (mode >= 0 && VOLT_SYS(fcntl, fd, F_SETFL, mode | O_NONBLOCK) == 0 &&
        VOLT_SYS(fcntl, fd, F_SETFD, FD_CLOEXEC) == 0)
        return fd;
    int error = errno;
    if (fd >= 0) VOLT_SYS(close, fd);
    return -error;
}
// Returns a non-blocking eventfd, or -errno.
static int volt__sys_eventfd(void) {
    int fd = VOLT_SYS(eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0 || !volt__sys_is_unsupported(errno)) return fd < 0 ? -errno : fd;
    return volt__sys_set_flags(VOLT_SYS(eventfd, 0, 0));
}

#ifdef VOLT_SINGLE_THREAD // no other thread could end a wait, so each wait times out at once
static inline int volt__sys_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline) {
    (void)word, (void)expected, (void)deadline;
    return -ETIMEDOUT;
}
static inline void volt__sys_futex_wake(uint32_t *word, int n) { (void)word, (void)n; }
#else
// SYS_futex takes a timespec of two longs. Newer 32-bit ports have only SYS_futex_time64, whose
// timespec has 64-bit members.
#ifdef SYS_futex
#  define VOLT__SYS_FUTEX SYS_futex
typedef struct volt__timespec {
    long sec, nsec;
} volt__timespec;
#else
#  define VOLT__SYS_FUTEX SYS_futex_time64
typedef struct volt__timespec {
    int64_t sec, nsec;
} volt__timespec;
#endif
// Each includes FUTEX_PRIVATE_FLAG, 128. FUTEX_WAIT takes a relative time, FUTEX_WAIT_BITSET an
// absolute time of CLOCK_MONOTONIC.
#define VOLT__FUTEX_WAIT 128
#define VOLT__FUTEX_WAIT_BITSET 137
#define VOLT__FUTEX_WAKE 129

// A wait. `ns` is relative or absolute, as `op` demands; VOLT_NEVER: no limit. The last argument of
// the call, ~0u, is FUTEX_BITSET_MATCH_ANY. Returns 0 or -errno.
static int volt__sys_futex(uint32_t *word, int op, uint32_t expected, int64_t ns) {
    volt__timespec t;
    int64_t sec = ns > 0 ? ns / 1000000000 : 0;
    int64_t most = sizeof t.sec == 4 ? INT32_MAX : INT64_MAX;
    t.sec = (__typeof__(t.sec))(sec < most ? sec : most);
    t.nsec = (__typeof__(t.nsec))(ns > 0 ? ns % 1000000000 : 0);
    if (VOLT_SYS(syscall, VOLT__SYS_FUTEX, word, op, expected, ns == VOLT_NEVER ? NULL : &t, NULL,
                 ~0u) == 0)
        return 0;
    return -errno;
}
static __attribute__((unused)) int volt__sys_futex_wait(uint32_t *word, uint32_t expected,
                                                        int64_t deadline) {
    int rc = volt__sys_futex(word, VOLT__FUTEX_WAIT_BITSET, expected, deadline);
    if (!volt__sys_is_unsupported(-rc)) return rc;
    int64_t now = volt__sys_now();
    if (deadline != VOLT_NEVER) deadline = deadline > now ? deadline - now : 0;
    return volt__sys_futex(word, VOLT__FUTEX_WAIT, expected, deadline);
}
static __attribute__((unused)) void volt__sys_futex_wake(uint32_t *word, int n) {
    (void)VOLT_SYS(syscall, VOLT__SYS_FUTEX, word, VOLT__FUTEX_WAKE, n, NULL, NULL, 0);
}

// membarrier(2), Linux 4.14. When VOLT__MEMBARRIER returns, each running thread of the process has
// passed a full barrier since the call. The process must register first, once; forked children
// inherit the registration.
#define VOLT__MEMBARRIER 8           // MEMBARRIER_CMD_PRIVATE_EXPEDITED
#define VOLT__MEMBARRIER_REGISTER 16 // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
static __attribute__((unused)) int volt__sys_membarrier(int command) {
#ifdef SYS_membarrier
    return VOLT_SYS(syscall, SYS_membarrier, command, 0, 0) == 0 ? 0 : -errno;
#else
    (void)command;
    return -ENOSYS;
#endif
}
#endif

static int volt__epoll_ms(int64_t timeout_ns) {
    // rounded up: a wait that ends early is repeated, and the rest of less than 1 ms would spin
    int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + 999999) / 1000000;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
static __attribute__((unused)) int volt__sys_epoll_wait(int ep, struct epoll_event *ev, int n,
                                                        int64_t timeout_ns) {
    int rc = -1;
#ifdef SYS_epoll_pwait2
    if (timeout_ns > 0) { // Linux 5.11
        struct {
            int64_t sec, nsec;
        } t;
        t.sec = timeout_ns / 1000000000;
        t.nsec = timeout_ns % 1000000000;
        rc = (int)VOLT_SYS(syscall, SYS_epoll_pwait2, ep, ev, n, &t, NULL, 0);
        // on any other error, calls epoll_wait, which every kernel has
        if (rc >= 0 || errno == EINTR) return rc < 0 ? -EINTR : rc;
    }
#endif
    rc = VOLT_SYS(epoll_wait, ep, ev, n, volt__epoll_ms(timeout_ns));
    return rc < 0 ? -errno : rc;
}

static __attribute__((unused)) uint64_t volt__sys_random(void) {
    uint64_t r = 0;
#ifdef SYS_getrandom
    if (VOLT_SYS(syscall, SYS_getrandom, &r, sizeof r, 1 /* GRND_NONBLOCK */) == sizeof r) return r;
#endif
    // no entropy yet, or before Linux 3.17: the time, and the address of the stack
    return (uint64_t)volt__sys_now() ^ (uintptr_t)&r;
}

static __attribute__((unused, noreturn)) void volt__sys_panic(const char *text) {
    // aborts in both cases: the `if` only prevents a warning about an unused result
    if (VOLT_SYS(write, 2, text, strlen(text)) < 0) abort();
    abort();
}

#ifdef VOLT_SINGLE_THREAD
// Returns 0 or an errno.
static inline int volt__sys_sigmask(int how, const sigset_t *set, sigset_t *before) {
    return VOLT_SYS(sigprocmask, how, set, before) < 0 ? errno : 0;
}
static inline int volt__sys_disable_cancel(void) { return 0; }
static inline void volt__sys_restore_cancel(int state) { (void)state; }
#else
// Called around volt_run, whose thread carries worker 0: pthread_cancel would unwind the worker in
// the middle of a system call. With cancellation disabled, a request stays pending until volt_run
// has returned.
static int volt__sys_disable_cancel(void) {
    int state = 0;
#ifndef __BIONIC__ // has no cancellation
    VOLT_SYS(pthread_setcancelstate, PTHREAD_CANCEL_DISABLE, &state);
#endif
    return state;
}
static void volt__sys_restore_cancel(int state) {
#ifndef __BIONIC__
    VOLT_SYS(pthread_setcancelstate, state, &state);
#endif
    (void)state;
}
static inline int volt__sys_sigmask(int how, const sigset_t *set, sigset_t *before) {
    return VOLT_SYS(pthread_sigmask, how, set, before);
}
static void volt__sys_name_thread(const char *name) {
    VOLT_SYS(pthread_setname_np, pthread_self(), name);
}
// Called around the creation of a thread, which inherits the mask: asynchronous signals are for the
// application's threads. Signals that report a fault of the thread itself are not blocked: if one
// occurs while it is blocked, the kernel kills the process without calling its handler.
static void volt__sys_block_signals(sigset_t *before) {
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&set, faults[i]);
    volt__sys_sigmask(SIG_SETMASK, &set, before);
}
static void volt__sys_restore_signals(const sigset_t *before) {
    volt__sys_sigmask(SIG_SETMASK, before, NULL);
}
#endif

#ifndef VOLT_NO_IO
// Returns a non-blocking, close-on-exec socket, or -errno.
static int volt__sys_accept(int fd, volt_addr *peer_or_null) {
    volt_addr peer;
    socklen_t len = sizeof peer.sa_, *n = peer_or_null ? &len : NULL;
    struct sockaddr *sa = peer_or_null ? (struct sockaddr *)(void *)peer.sa_ : NULL;
    if (peer_or_null) memset(&peer, 0, sizeof peer);
    int rc = VOLT_SYS(accept4, fd, sa, n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (rc < 0 && volt__sys_is_unsupported(errno))
        rc = volt__sys_set_flags(VOLT_SYS(accept, fd, sa, n));
    else if (rc < 0) rc = -errno;
    if (rc < 0 || !peer_or_null) return rc;
    peer.len_ = len < sizeof peer.sa_ ? len : (uint32_t)sizeof peer.sa_;
    *peer_or_null = peer;
    return rc;
}
#ifdef __O_DIRECT // packet mode, on a pipe; O_DIRECT itself is defined only with _GNU_SOURCE
#  define VOLT__O_PACKETS __O_DIRECT
#elif defined(O_DIRECT)
#  define VOLT__O_PACKETS O_DIRECT
#else
#  define VOLT__O_PACKETS 0
#endif
// Opens the terminal or pipe behind fd once more, with the access mode of `mode`. O_NONBLOCK is a
// flag of the file description, which other processes may share; the new description is our own.
// The new number is never 0, 1 or 2: the program may have closed those, and they must not become
// this file. Returns the new descriptor, or < 0.
static int volt__sys_reopen(int fd, int mode) {
    char path[32] = "/proc/self/fd/";
    size_t at = strlen(path), digits = 1;
    for (int x = fd; x >= 10; x /= 10) digits++;
    path[at + digits] = 0;
    for (size_t i = digits; i-- > 0; fd /= 10) path[at + i] = (char)('0' + fd % 10);
    int flags = (mode & (O_ACCMODE | VOLT__O_PACKETS)) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, own;
    do own = VOLT_SYS(open, path, flags);
    while (own < 0 && errno == EINTR);
    if (own < 0 || own > STDERR_FILENO) return own;
    int low = own;
    own = VOLT_SYS(fcntl, low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    VOLT_SYS(close, low);
    return own;
}
#endif
// The two calls around a write by a thread whose signal mask is the application's. The first blocks
// SIGPIPE. The second removes the signal if the write has raised it (`was_raised`) and it was not
// pending before, and restores the mask.
typedef struct volt__sigpipe {
    sigset_t set, before;
    int was_pending;
} volt__sigpipe;
static void volt__sys_sigpipe_block(volt__sigpipe *p) {
    sigset_t pending;
    sigemptyset(&p->set);
    sigaddset(&p->set, SIGPIPE);
    sigpending(&pending);
    p->was_pending = sigismember(&pending, SIGPIPE);
    volt__sys_sigmask(SIG_BLOCK, &p->set, &p->before);
}
static void volt__sys_sigpipe_unblock(volt__sigpipe *p, int was_raised) {
    struct timespec now = {0, 0};
    if (was_raised && !p->was_pending)
        while (VOLT_SYS(sigtimedwait, &p->set, NULL, &now) < 0 && errno == EINTR) {}
    volt__sys_sigmask(SIG_SETMASK, &p->before, NULL);
}

// ---- memory: the default allocator, which maps whole pages

// Returns `size` rounded up to whole pages; *page receives the size of a page.
static size_t volt__sys_pages(size_t size, size_t *page) {
    long n = VOLT_SYS(sysconf, _SC_PAGESIZE);
    *page = n > 0 ? (size_t)n : 4096;
    return (size + *page - 1) & ~(*page - 1);
}
#ifndef VOLT_NO_IO
// Returns 1 if these bytes are mapped and readable, 0 if not. Tells a short transfer from one that
// ended at unmapped memory (see volt__fd_mark_empty). Before Linux 5.14, memory that is mapped
// without access counts as readable.
static __attribute__((unused)) int volt__sys_is_mapped(const char *p, size_t n) {
    unsigned char is_resident[64];
    size_t page, part;
    (void)volt__sys_pages(0, &page);
    uintptr_t from = (uintptr_t)p & ~(page - 1), end = (uintptr_t)p + n;
    void *at = (void *)from;
    enum { POPULATE_READ = 22 }; // MADV_POPULATE_READ, which older headers lack
    if (VOLT_SYS(madvise, at, end - from, POPULATE_READ) == 0) return 1;
    // EINVAL: memory without access, or a kernel before 5.14, which does not know the advice. That
    // kernel refuses an empty range as well; a newer one accepts it.
    if (errno != EINVAL || VOLT_SYS(madvise, at, 0, POPULATE_READ) == 0) return 0;
    for (; from < end; from += part) {
        part = end - from < sizeof is_resident * page ? end - from : sizeof is_resident * page;
        if (VOLT_SYS(mincore, (void *)from, part, is_resident) < 0) return 0;
    }
    return 1;
}
#endif
static char *volt__sys_mmap(size_t bytes) {
    void *p =
        VOLT_SYS(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : (char *)p;
}
// Returns zeroed memory at a multiple of `align`, a power of two, or NULL.
static void *volt__sys_map(void *user, size_t size, size_t align) {
    size_t page, bytes = volt__sys_pages(size, &page);
    (void)user;
    // Usually the first mapping is aligned, because the kernel places each right below the last one
    // and most have the same size. If it is not, a larger one is mapped, and its ends are unmapped.
    char *p = volt__sys_mmap(bytes);
    if (!p || ((uintptr_t)p & (align - 1)) == 0) return p;
    VOLT_SYS(munmap, p, bytes);
    p = volt__sys_mmap(bytes + align);
    if (!p) return NULL;
    size_t before = (align - ((uintptr_t)p & (align - 1))) & (align - 1);
    if (before) VOLT_SYS(munmap, p, before);
    VOLT_SYS(munmap, p + before + bytes, align - before);
    return p + before;
}
// Returns a word on a page of its own, which the kernel wipes in a forked child (Linux 4.14), or
// NULL. Calls from outside the workers read this word instead of calling getpid.
static __attribute__((unused)) uint32_t *volt__sys_fork_word(void) {
    size_t page, bytes = volt__sys_pages(sizeof(uint32_t), &page);
    void *p = volt__sys_mmap(bytes);
    if (!p) return NULL;
    if (VOLT_SYS(madvise, p, bytes, 18 /* MADV_WIPEONFORK */) < 0) {
        VOLT_SYS(munmap, p, bytes);
        return NULL;
    }
    *(uint32_t *)p = 1;
    return (uint32_t *)p;
}
static void volt__sys_unmap(void *user, void *block, size_t size) {
    size_t page, bytes = volt__sys_pages(size, &page);
    (void)user;
    VOLT_SYS(munmap, block, bytes);
}

// ---- child processes
// The child shares the memory of this process until its exec. It changes nothing but its own stack,
// and calls only functions that are safe in a signal handler, directly: a test replaces
// VOLT_START_CHILD as a whole.
#ifndef VOLT_NO_PROCESS
enum { VOLT__CHILD_FDS = 64 }; // standard streams and further descriptors
// What the pool thread has prepared for the child.
typedef struct volt__child {
    const volt_process_options *options;
    char *const *envp;
    const char *path; // PATH of this process
    volt_fd_pair fd[VOLT__CHILD_FDS];
    int n_fds, report_fd;
} volt__child;

// Ids by system calls: the functions of the C library would make all threads change theirs.
#ifdef SYS_setresuid32
enum { VOLT__SETGROUPS = SYS_setgroups32, VOLT__SETGID = SYS_setresgid32,
       VOLT__SETUID = SYS_setresuid32 };
#else
enum { VOLT__SETGROUPS = SYS_setgroups, VOLT__SETGID = SYS_setresgid,
       VOLT__SETUID = SYS_setresuid };
#endif
static int volt__child_set_ids(const volt_process_options *o) {
    return syscall(VOLT__SETGROUPS, 0, NULL) < 0 ||
                   syscall(VOLT__SETGID, o->gid, o->gid, o->gid) < 0 ||
                   syscall(VOLT__SETUID, o->uid, o->uid, o->uid) < 0
               ? errno
               : 0;
}
// Puts each descriptor in its place. First all are copied to numbers above the places, since the
// place of one may be the number of another.
static int volt__child_place_fds(volt__child *c) {
    int above = 3;
    for (int i = 0; i < c->n_fds; i++)
        if (c->fd[i].there >= above) above = c->fd[i].there + 1;
    int report_fd = fcntl(c->report_fd, F_DUPFD_CLOEXEC, above);
    if (report_fd < 0) return errno; // the report goes through the old one
    c->report_fd = report_fd;
    for (int i = 0; i < c->n_fds; i++) {
        int copy = fcntl(c->fd[i].here, F_DUPFD_CLOEXEC, above);
        if (copy < 0) return errno;
        c->fd[i].here = copy;
    }
    for (int i = 0; i < c->n_fds; i++)
        if (dup2(c->fd[i].here, c->fd[i].there) < 0) return errno;
    return 0;
}
static void volt__child_reset_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    for (int i = 1; i < NSIG; i++) (void)sigaction(i, &action, NULL);
}
// Tries the directories of PATH. As a shell does, goes on after an error that another directory may
// not have, and remembers that a file was found but may not be run.
static int volt__child_search(const volt__child *c) {
    const char *name = c->options->argv[0], *from = c->path;
    char *const *argv = (char *const *)(uintptr_t)c->options->argv;
    size_t len = strlen(name);
    char file[PATH_MAX];
    int error = ENOENT;
    if (strchr(name, '/')) {
        execve(name, argv, c->envp);
        return errno;
    }
    if (len == 0) return ENOENT;
    for (;;) {
        size_t n = strcspn(from, ":");
        if (n + len + 2 <= sizeof file) {
            memcpy(file, from, n);
            if (n > 0) file[n] = '/';
            memcpy(file + n + (n > 0), name, len + 1);
            execve(file, argv, c->envp);
            if (errno == EACCES) error = EACCES;
            else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV &&
                     errno != ETIMEDOUT)
                return errno;
        }
        if (!from[n]) return error;
        from += n + 1;
    }
}
// Returns only if it fails: the errno.
static int volt__child_exec(volt__child *c) {
    const volt_process_options *o = c->options;
    int error = 0;
    sigset_t none;
    volt__child_reset_signals();
    if (o->is_session && setsid() < 0) return errno;
    if (o->is_group && !o->is_session && setpgid(0, 0) < 0) return errno;
    if ((error = volt__child_place_fds(c)) != 0) return error;
    if (o->dir_or_null && chdir(o->dir_or_null) < 0) return errno;
    if (o->has_ids && (error = volt__child_set_ids(o)) != 0) return error;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return volt__child_search(c);
}

// Runs in the child. Reports the error of its exec, and ends.
static __attribute__((noreturn)) void volt__child_run(volt__child *c) {
    int error = volt__child_exec(c);
    ssize_t n;
    do n = write(c->report_fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    _exit(127);
}
// Starts the child, with all signals blocked: a handler of the program must not run in it, on the
// memory of this process. vfork is alone in a function, so that no variable lies in a register that
// the child changes. Returns the pid or -errno.
static __attribute__((noinline)) int volt__child_vfork(volt__child *c) {
    pid_t pid = vfork();
    if (pid == 0) volt__child_run(c);
    return pid < 0 ? -errno : (int)pid;
}
static int volt__sys_start_child(volt__child *c) {
    sigset_t all, before;
    sigfillset(&all);
    volt__sys_sigmask(SIG_SETMASK, &all, &before);
    int pid = volt__child_vfork(c);
    volt__sys_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}
static const char *volt__sys_path(void) {
    const char *path = getenv("PATH");
    return path ? path : "/usr/local/bin:/bin:/usr/bin";
}
#ifdef SYS_pidfd_open
#  define VOLT__SYS_PIDFD_OPEN SYS_pidfd_open
#else
#  define VOLT__SYS_PIDFD_OPEN 434
#endif
#ifndef VOLT_START_CHILD // the pid or -errno
#  define VOLT_START_CHILD(child_) volt__sys_start_child(child_)
#endif
#endif
#ifndef VOLT_NO_SIGNAL
// Returns 0, or -EINVAL for a number that is no signal.
static int volt__sys_signal_set(sigset_t *set, const int *list, size_t n) {
    sigemptyset(set);
    for (size_t i = 0; i < n; i++)
        if (sigaddset(set, list[i]) < 0) return -EINVAL;
    return 0;
}
#endif

//==================================================================================================
// >>tunables  bounds, bit widths and thresholds; tests shrink them
//==================================================================================================
// The compile-time bounds, bit widths and thresholds of the implementation, and the defaults of
// volt_config. Each may be defined before the include in the implementation file; only
// VOLT_SINGLE_THREAD overrides VOLT_MAX_WORKERS. Tests shrink them so that wraps and overflows
// happen all the time. Static assertions, here and in the sections that use them, check the limits.
#ifndef VOLT_RING_CAP
#  define VOLT_RING_CAP 256u // tasks in a worker's ring; a power of two
#endif
#ifndef VOLT_RING_INDEX_BITS
// Bits of an index of a ring. An index repeats after 2^bits tasks have left the ring. This must not
// happen while a thief is preempted between its load and its CAS of head (see >>queues).
#  define VOLT_RING_INDEX_BITS (sizeof(uintptr_t) == 8 ? 32 : 23)
#endif
#ifndef VOLT_CLAIM_MAX // most tasks that a worker claims from its ring by one CAS
#  define VOLT_CLAIM_MAX (VOLT_RING_CAP < 16 ? VOLT_RING_CAP / 2 : 8u)
#endif
#ifndef VOLT_RING_DISTANCE_BITS
#  define VOLT_RING_DISTANCE_BITS 9 // bits of `distance` in a ring's head, a number of slots
#endif
#ifndef VOLT_WHEEL_BITS
#  define VOLT_WHEEL_BITS 6 // 2^bits slots per level of a timer wheel
#endif
#ifndef VOLT_WHEEL_LEVELS
#  define VOLT_WHEEL_LEVELS 6 // together they span 2^36 ticks, about 50 days
#endif
#ifndef VOLT_TICK_NS
#  define VOLT_TICK_NS 62500 // one slot of the lowest level of a timer wheel
#endif
#ifndef VOLT_FIRE_MAX
#  define VOLT_FIRE_MAX 64 // most timers handled per hold of a wheel's lock
#endif
#ifdef VOLT_SINGLE_THREAD
#  undef VOLT_MAX_WORKERS
#  define VOLT_MAX_WORKERS 1u
#elif !defined(VOLT_MAX_WORKERS)
#  define VOLT_MAX_WORKERS 1024u // 1 leaves out what only several workers need
#endif
#ifndef VOLT_EVENTS
#  define VOLT_EVENTS 256 // most events fetched by one epoll_wait
#endif
#ifndef VOLT_SLAB_SIZE
#  define VOLT_SLAB_SIZE 65536u // bytes and alignment of a slab; a power of two
#endif
#ifndef VOLT_LIFO_MAX
#  define VOLT_LIFO_MAX 3 // most consecutive polls from the LIFO slot
#endif
#ifndef VOLT_BUDGET
#  define VOLT_BUDGET 128 // leaves that may complete in one poll; default of .budget
#endif
#ifndef VOLT_EVENT_INTERVAL
#  define VOLT_EVENT_INTERVAL 255 // most polls between two event polls; default of .event_interval
#endif
#ifndef VOLT_EVENT_NS
#  define VOLT_EVENT_NS 100000 // target time between two event polls
#endif
#ifndef VOLT_INJECT_NS
// Target time between two checks of the queues behind the ring: overflow queue, inbox, injector.
#  define VOLT_INJECT_NS 1000000
#endif
#ifndef VOLT_INJECT_MIN
// Fewest polls between two checks of these queues. If it were 8, the checks would come too late for
// polls longer than 125 us, rather than for those longer than 500 us.
#  define VOLT_INJECT_MIN 2
#endif
#ifndef VOLT_INJECT_MAX
#  define VOLT_INJECT_MAX 255 // most polls between two checks of these queues
#endif
#ifndef VOLT_INJECT_BATCH
#  define VOLT_INJECT_BATCH 128 // most tasks taken at once from a queue behind the ring
#endif
#ifndef VOLT_INJECT_BATCH_MIN
#  define VOLT_INJECT_BATCH_MIN 16 // that limit after an overflow of the ring; grows by 1 per batch
#endif
#ifndef VOLT_OVERFLOW_CAP
#  define VOLT_OVERFLOW_CAP 64u // batches in an overflow queue; a power of two
#endif
#ifndef VOLT_OVERFLOW_MS
#  define VOLT_OVERFLOW_MS 8 // least time between moves from the oldest batch to the injector
#endif
#ifndef VOLT_WAKE_COST_NS
#  define VOLT_WAKE_COST_NS 5000 // cost of waking a parked worker; a backlog of less wakes none
#endif
#ifndef VOLT_STEAL_COST_NS
#  define VOLT_STEAL_COST_NS 128 // cost of a stolen task to the worker that loses it
#endif
#ifndef VOLT_CLAIM_NS
#  define VOLT_CLAIM_NS 1000 // most poll time of one claim, whose tasks cannot be stolen
#endif
#ifndef VOLT_POLL_NS
#  define VOLT_POLL_NS 50000 // assumed duration of a poll before the first measurement
#endif
#ifndef VOLT_WATCHDOG_US
#  define VOLT_WATCHDOG_US 750 // default of .watchdog_us
#endif
#ifndef VOLT_STACK_SIZE
#  define VOLT_STACK_SIZE 262144 // bytes; default of .stack_size
#endif
#ifndef VOLT_STACK_FILL
#  define VOLT_STACK_FILL (VOLT_DEBUG ? 2048 : 0) // bytes of stack overwritten before each poll
#endif
#ifndef VOLT_TRACE
#  define VOLT_TRACE 0 // see >>config
#endif
#ifndef VOLT_TRACE_CAP
#  define VOLT_TRACE_CAP 4096u // events kept per trace; a power of two
#endif
#ifndef VOLT_MUTEX_BARGES
// The number of times that the first waiter of a mutex may be woken and find it taken again. After
// that, the next unlock grants the mutex to this waiter. At most 65535.
#  define VOLT_MUTEX_BARGES 4
#endif
#ifndef VOLT_REMOTE_BATCH
#  define VOLT_REMOTE_BATCH 32 // most freed slots that a remote batch collects
#endif
#ifndef VOLT_LOCK_TRIES
#  define VOLT_LOCK_TRIES 6 // tries for a held lock before sleeping; about 50 us in all
#endif
#ifndef VOLT_LOCK_SPIN
#  define VOLT_LOCK_SPIN 64u // VOLT_CPU_RELAX calls before the first try, about 1 us; then doubled
#endif

#ifndef VOLT_POOL_MAX
#  define VOLT_POOL_MAX 16 // threads for blocking calls; default of .max_blocking_threads
#endif
#ifndef VOLT_POOL_NAMES
#  define VOLT_POOL_NAMES 4 // threads for host lookups
#endif
#ifndef VOLT_POOL_IDLE_NS
#  define VOLT_POOL_IDLE_NS 10000000000 // a thread of the pool ends after this time without a job
#endif
#ifndef VOLT_PIPE_MANY
#  define VOLT_PIPE_MANY 32768 // bytes of one splice that make its pipe a large one
#endif

VOLT__SASSERT(VOLT_EVENTS >= 1 && VOLT_EVENTS <= 4096,
              "VOLT_EVENTS: one array of events on the stack");
VOLT__SASSERT(VOLT_MAX_WORKERS >= 1 && VOLT_MAX_WORKERS <= 65535, "VOLT_MAX_WORKERS: 16 bits");
VOLT__SASSERT((VOLT_SLAB_SIZE & (VOLT_SLAB_SIZE - 1)) == 0, "VOLT_SLAB_SIZE: a power of two");
VOLT__SASSERT(VOLT_SLAB_SIZE >= 16384 && VOLT_SLAB_SIZE <= 65536, "VOLT_SLAB_SIZE: its classes");
VOLT__SASSERT(VOLT_BUDGET >= 1 && VOLT_BUDGET <= UINT16_MAX, "VOLT_BUDGET: 16 bits");
VOLT__SASSERT(VOLT_INJECT_MIN >= 1 && VOLT_INJECT_MIN <= VOLT_INJECT_MAX, "VOLT_INJECT_MIN, _MAX");
VOLT__SASSERT(VOLT_LIFO_MAX >= 1 && VOLT_FIRE_MAX >= 1 && VOLT_INJECT_BATCH >= 1, "at least one");
VOLT__SASSERT(VOLT_TICK_NS >= 1000 && VOLT_POLL_NS >= 1, "VOLT_TICK_NS, VOLT_POLL_NS");

//==================================================================================================
// >>atomics  atomic operations named by their memory order, and the ledger of their pairs
//==================================================================================================
// All atomic operations of the implementation. The suffix of an operation is its memory order: rlx,
// acq, rel or acq_rel; only the fence is seq_cst. No other section uses atomic builtins, each
// ordered operation carries the tag of a row of the ledger, and each relaxed one gives its reason
// after `rlx:` (tests/static/rules.sh checks that). In a comment such as "[Q1] with push", `push`
// is the other side of the pair: a function, without its prefix, or an event. Under
// VOLT_SINGLE_THREAD all operations are plain accesses.
//
// A row of the ledger is a pair of sides: the left one publishes what the row hands over, the right
// one observes it. The shape of a pair says which orders it needs:
//   MP  message passing: a release operation, and an acquire operation that reads its value, or a
//       value that later RMWs have made of it
//   SB  store buffering: each side writes its word, then reads the word of the other side. With a
//       seq_cst fence in between on both sides, or membarrier(2) on one, at least one side sees the
//       write of the other. "a" vs "b": the facts that the left and the right side announce
//   RC  reference count: acq_rel, so that the last operation sees what came before all others
// [L2] is also the tag of the asymmetric fence itself, and of its registration.
//
// ---- ledger
//  tag   publishes                        observes                       hands over           shape
//  [L1]  unlock: store, xchg              lock: cas, xchg                data under the lock     MP
//  [L2]  unlock: store, load of count     sleep: count, membarrier, xchg "free" vs "waiting"     SB
//  [L3]  biased lock: store, load         revoke: lock, membarrier, load "held" vs "revoked"     SB
//  [Q1]  ring push, steal: tail store     steal: tail load               slot contents           MP
//  [Q2]  ring claim, steal: head cas      ring push, steal: head load    free slots              MP
//  [Q3]  injector, overflow: len store    pop, is_empty: len load        "something is queued"   MP
//  [Q4]  LIFO push: store                 rescue: load, under [L3]       the task in the slot    MP
//  [Q5]  rescue: store of next            ring push: load of next        free slots              MP
//  [Q6]  ring claim: store of claimed     queued_at: load of claimed     head, next              MP
//  [T1]  wake, suspend: word rmw          begin: word rmw                frame, user state       MP
//  [T2]  finish, release: word rmw        finish, release: word rmw      uses before the free    RC
//  [T3]  complete: join xchg              join, try_join: load, cas      the result              MP
//  [M1]  remote free: cas                 heap collect: xchg             the freed slots         MP
//  [M2]  carve, task init: stores         walk: carved load, word cas    header of a live task   MP
//  [F1]  fd page: cas                     fd lookup: load                the zeroed page         MP
//  [F2]  fd pin, unpin, close: rmw        fd pin, unpin, close: rmw      which thread closes     RC
//  [F3]  event: seq store                 operation: seq load            newer readiness         MP
//  [I1]  queue push, then fence           park: bit, then fence          "queued" vs "asleep"    SB
//  [I2]  claim, park: bit, searching      park, claim, begin/end_search  the parked worker       MP
//  [W1]  watchdog claim: bit, then fence  watchdog take: cas, then fence "awake" vs "disarmed"   SB
//  [W2]  watchdog claim: cas 0 -> 1       watchdog take: cas 1 -> 0      which thread scans      MP
//  [R1]  worker start: started store      volt__started: load            the worker's memory     MP
//  [S1]  shutdown: closed, acks, stop     event poll, waiters, teardown  all before that step    MP
//  [S2]  end: completed, then fence       stop: fence, then completed    "ended" on both sides   SB
//  [C1]  token cancel, close: flag store  is_cancelled, is_closed: load  writes before it        MP
//  [G1]  sema release, close: word rmw    sema acquire: word load, cas   data under the lock     MP
//  [G2]  waitword change: word cas        waitword check, wait: load     writes before it        MP
//  [G3]  notify one, all: word rmw        notify wait: word load, cas    writes before it        MP
//  [O1]  queue put: word cas, store       queue take: word cas           the pushed entries      MP
//  [Y1]  tty save: store                  volt_tty_restore: cas        the saved state          MP
//  [X1]  rendezvous claim: cas            select begin, end: xchg, store which arm was met       MP
//  [P1]  parker set: store                parker wait: load              writes before it        MP
//  [H1]  carrier release: store           carrier acquire: load          the whole worker        MP
//  [H2]  end of a thread, close: stores   close, destroy: loads          "no thread is left"     MP
//  [H3]  block in place: count add, sub   block in place: count add      nothing; which is last  RC
#ifndef VOLT_SINGLE_THREAD
// Orders the compiler only. Where >>locks uses it, membarrier(2) on the other side orders the
// processor.
#  define volt__fence_compiler() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#  define volt__load_rlx(p_) __atomic_load_n((p_), __ATOMIC_RELAXED)
#  define volt__load_acq(p_) __atomic_load_n((p_), __ATOMIC_ACQUIRE)
#  define volt__store_rlx(p_, v_) __atomic_store_n((p_), (v_), __ATOMIC_RELAXED)
#  define volt__store_rel(p_, v_) __atomic_store_n((p_), (v_), __ATOMIC_RELEASE)
#  define volt__xchg_acq(p_, v_) __atomic_exchange_n((p_), (v_), __ATOMIC_ACQUIRE)
#  define volt__xchg_rel(p_, v_) __atomic_exchange_n((p_), (v_), __ATOMIC_RELEASE)
#  define volt__xchg_acq_rel(p_, v_) __atomic_exchange_n((p_), (v_), __ATOMIC_ACQ_REL)
#  define volt__add_rlx(p_, v_) __atomic_fetch_add((p_), (v_), __ATOMIC_RELAXED)
#  define volt__add_acq_rel(p_, v_) __atomic_fetch_add((p_), (v_), __ATOMIC_ACQ_REL)
#  define volt__sub_acq_rel(p_, v_) __atomic_fetch_sub((p_), (v_), __ATOMIC_ACQ_REL)
#  define volt__and_acq_rel(p_, v_) __atomic_fetch_and((p_), (v_), __ATOMIC_ACQ_REL)
#  define volt__or_acq_rel(p_, v_) __atomic_fetch_or((p_), (v_), __ATOMIC_ACQ_REL)
#  define volt__xor_acq_rel(p_, v_) __atomic_fetch_xor((p_), (v_), __ATOMIC_ACQ_REL)
// Strong compare-and-swap (CAS): 1 if *p_ was *old_ and is now new_. Else 0, and *old_ receives the
// current value: by an acquire load after cas_acq_rel, by a relaxed one after the others.
#  define volt__cas_acq(p_, old_, new_) \
      __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#  define volt__cas_rel(p_, old_, new_) \
      __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#  define volt__cas_acq_rel(p_, old_, new_) \
      __atomic_compare_exchange_n((p_), (old_), (new_), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
// A seq_cst fence between a store and a later load of another word. The thread sanitizer does not
// model fences: it gets an RMW of word_ instead, which orders the two sides if both pass the same
// word. A model checker (VOLT_MODEL) gets the fence.
#  if defined(__SANITIZE_THREAD__) && !defined(VOLT_MODEL)
#    define VOLT__TSAN 1
#  elif defined(__has_feature)
#    if __has_feature(thread_sanitizer) && !defined(VOLT_MODEL)
#      define VOLT__TSAN 1
#    endif
#  endif
#  ifdef VOLT__TSAN
#    define volt__fence_sc(word_) ((void)__atomic_fetch_add((word_), 0, __ATOMIC_SEQ_CST))
#  else
#    define volt__fence_sc(word_) ((void)(word_), __atomic_thread_fence(__ATOMIC_SEQ_CST))
#  endif
#else // one thread: plain accesses, with the results of the atomic operations
// In VOLT__RMW, new_ may use volt__was, the old value.
#  define VOLT__RMW(p_, new_) \
      __extension__({ \
          __typeof__(*(p_)) volt__was = *(p_); \
          *(p_) = (new_); \
          volt__was; \
      })
#  define VOLT__CAS(p_, old_, new_) \
      (*(p_) == *(old_) ? (*(p_) = (new_), 1) : (*(old_) = *(p_), 0))
#  define volt__load_rlx(p_) (*(p_))
#  define volt__load_acq(p_) (*(p_))
#  define volt__store_rlx(p_, v_) ((void)(*(p_) = (v_)))
#  define volt__store_rel(p_, v_) ((void)(*(p_) = (v_)))
#  define volt__xchg_acq(p_, v_) VOLT__RMW(p_, v_)
#  define volt__xchg_rel(p_, v_) VOLT__RMW(p_, v_)
#  define volt__xchg_acq_rel(p_, v_) VOLT__RMW(p_, v_)
#  define volt__add_rlx(p_, v_) VOLT__RMW(p_, volt__was + (v_))
#  define volt__add_acq_rel(p_, v_) VOLT__RMW(p_, volt__was + (v_))
#  define volt__sub_acq_rel(p_, v_) VOLT__RMW(p_, volt__was - (v_))
#  define volt__and_acq_rel(p_, v_) VOLT__RMW(p_, volt__was & (v_))
#  define volt__or_acq_rel(p_, v_) VOLT__RMW(p_, volt__was | (v_))
#  define volt__xor_acq_rel(p_, v_) VOLT__RMW(p_, volt__was ^ (v_))
#  define volt__cas_acq(p_, old_, new_) VOLT__CAS(p_, old_, new_)
#  define volt__cas_rel(p_, old_, new_) VOLT__CAS(p_, old_, new_)
#  define volt__cas_acq_rel(p_, old_, new_) VOLT__CAS(p_, old_, new_)
#  define volt__fence_sc(word_) ((void)(word_))
#endif

VOLT__SASSERT(sizeof(void *) == sizeof(uintptr_t),
              "pointers and words are exchanged for each other");
VOLT__SASSERT(__atomic_always_lock_free(sizeof(uintptr_t), 0), "needs pointer-sized atomics");
VOLT__SASSERT(__atomic_always_lock_free(4, 0), "needs 32-bit atomics");

//==================================================================================================
// >>base  misuse, bits, time, random numbers, error texts
//==================================================================================================
// Helpers for all other sections, and the public volt_strerror and volt_now. No function here takes
// a lock or has state of its own, and any thread may call it; a volt__random belongs to one thread
// at a time.
#define VOLT__CACHE_LINE 64       // bytes
#define VOLT__CACHE_LINE_PAIR 128 // bytes; prefetchers load two lines at a time

// Stops the program with the line "volt: site: what". Each text is cut at its first tab, where a
// site of VOLT__SPAWN_SITE continues with the name of a function.
VOLT_API void volt__misuse(const char *site, const char *what) {
    char text[256];
    size_t n = 0;
    const char *parts[4] = { "volt: ", site, ": ", what };
    for (int i = 0; i < 4; i++)
        for (const char *c = parts[i]; *c && *c != '\t' && n < sizeof text - 2; c++) text[n++] = *c;
    text[n++] = '\n';
    text[n] = 0;
    VOLT_PANIC(text);
    __builtin_unreachable();
}
// Called by VOLT_BEGIN if the frame's resume line is not that of an await of this function.
VOLT_API volt_poll volt__bad_resume(const char *site, const volt_frame *f) {
    volt__misuse(site, f->node_.resume_line_ == VOLT__DONE
                           ? "async function polled after it has returned"
                           : "no await of this function to resume at: the frame is not zeroed "
                             "or not its own, or the await is inside a `switch`");
}
// Called by the code behind VOLT_END. Only a stray `break` that the compiler has not reported gets
// there.
VOLT_API volt_poll volt__stray_break(void) {
    volt__misuse("VOLT_END", "`break` outside a loop leaves VOLT_BEGIN..VOLT_END");
}

// Executes VOLT_CPU_RELAX n times. Called by a thread that has lost a race for a word. n is large,
// because the winner has the word and its data in its cache and will soon use them again, and
// fetching them from there takes longer than most critical sections.
static __attribute__((noinline)) void volt__spin_backoff(uint32_t n) {
    for (; n > 0; n--) VOLT_CPU_RELAX();
}

static inline int volt__highest_bit(uint64_t x) {
    VOLT_ASSERT(x != 0);
    return 63 - __builtin_clzll(x);
}
static inline uint32_t volt__min32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t volt__max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t volt__clamp32(int64_t x, uint32_t low, uint32_t high) {
    VOLT_ASSERT(low <= high);
    return x < low ? low : x > high ? high : (uint32_t)x;
}
// Returns x + y, or VOLT_NEVER if the sum would exceed that. y >= 0.
static inline volt_time volt__time_add(volt_time x, volt_time y) {
    VOLT_ASSERT(y >= 0);
    return x > VOLT_NEVER - y ? VOLT_NEVER : x + y;
}

// Returns the time that is `at_most` from now; VOLT_NEVER stays VOLT_NEVER. A negative duration
// counts as 0.
static volt_time volt__deadline(volt_time at_most) {
    return at_most == VOLT_NEVER ? VOLT_NEVER
                                 : volt__time_add(VOLT_NOW_NS(), at_most > 0 ? at_most : 0);
}

// xorshift64+ on two 32-bit halves, with shifts 17, 7 and 16. The halves are never both zero.
typedef struct volt__random {
    uint32_t a, b;
} volt__random;
// `stream` selects one of the sequences that belong to a seed. The factor is 2^64 divided by the
// golden ratio, so that successive streams begin far apart.
static void volt__random_seed(volt__random *r, uint64_t seed, uint32_t stream) {
    uint64_t x = seed + (uint64_t)(stream + 1) * 0x9E3779B97F4A7C15u;
    r->a = (uint32_t)(x >> 32);
    r->b = (uint32_t)x;
    if ((r->a | r->b) == 0) r->b = 1;
}
// Returns a number >= 0 and < n. n > 0.
static inline uint32_t volt__random_below(volt__random *r, uint32_t n) {
    uint32_t x = r->a, y = r->b;
    VOLT_ASSERT((x | y) != 0);
    VOLT_ASSERT(n > 0);
    r->a = y;
    x ^= x << 17;
    r->b = x ^ y ^ (x >> 7) ^ (y >> 16);
    // The sum wraps at 2^32. Lemire's reduction without the rejection loop: a bias of at most
    // n / 2^32 is harmless here.
    return (uint32_t)(((uint64_t)(r->a + r->b) * n) >> 32);
}

// The texts are general, because the exact meaning of a number depends on the call that returns it.
#define VOLT__ERRORS(X_) \
    X_(EPERM, "operation not permitted")                        \
    X_(ENOENT, "no such file or entry")                         \
    X_(ESRCH, "no such process")                                \
    X_(EINTR, "interrupted")                                    \
    X_(EIO, "input or output error")                            \
    X_(ENXIO, "no such device or address")                      \
    X_(E2BIG, "argument list too long")                         \
    X_(ENOEXEC, "not in an executable format")                  \
    X_(EBADF, "bad or closed descriptor")                       \
    X_(ECHILD, "no child process, or called in a forked child") \
    X_(EAGAIN, "would have to wait")                            \
    X_(ENOMEM, "out of memory")                                 \
    X_(EACCES, "permission denied")                             \
    X_(EFAULT, "bad address")                                   \
    X_(ENOTBLK, "not a block device")                           \
    X_(EBUSY, "in use")                                         \
    X_(EEXIST, "already exists")                                \
    X_(EXDEV, "on another file system")                         \
    X_(ENODEV, "no such device")                                \
    X_(ENOTDIR, "not a directory")                              \
    X_(EISDIR, "is a directory")                                \
    X_(EINVAL, "invalid argument")                              \
    X_(ENFILE, "too many open files in the system")             \
    X_(EMFILE, "too many open files")                           \
    X_(ENOTTY, "not possible for such a device")                \
    X_(ETXTBSY, "program file in use")                          \
    X_(EFBIG, "file too large")                                 \
    X_(ENOSPC, "no space left")                                 \
    X_(ESPIPE, "cannot seek")                                   \
    X_(EROFS, "file system is read-only")                       \
    X_(EMLINK, "too many links")                                \
    X_(EPIPE, "closed by the other side")                       \
    X_(EDOM, "argument outside the domain")                     \
    X_(ERANGE, "result out of range")                           \
    X_(EDEADLK, "would block a worker, or deadlock")            \
    X_(ENAMETOOLONG, "name too long")                           \
    X_(ENOLCK, "no locks left")                                 \
    X_(ENOSYS, "not implemented")                               \
    X_(ENOTEMPTY, "directory not empty")                        \
    X_(ELOOP, "too many symbolic links")                        \
    X_(ENOMSG, "no message of that type")                       \
    X_(EIDRM, "identifier removed")                             \
    X_(ECHRNG, "channel number out of range")                   \
    X_(EL2NSYNC, "level 2 not synchronized")                    \
    X_(EL3HLT, "level 3 halted")                                \
    X_(EL3RST, "level 3 reset")                                 \
    X_(ELNRNG, "link number out of range")                      \
    X_(EUNATCH, "protocol driver not attached")                 \
    X_(ENOCSI, "no CSI structure left")                         \
    X_(EL2HLT, "level 2 halted")                                \
    X_(EBADE, "invalid exchange")                               \
    X_(EBADR, "invalid request descriptor")                     \
    X_(EXFULL, "exchange full")                                 \
    X_(ENOANO, "no anode")                                      \
    X_(EBADRQC, "invalid request code")                         \
    X_(EBADSLT, "invalid slot")                                 \
    X_(EBFONT, "bad font file format")                          \
    X_(ENOSTR, "not a stream device")                           \
    X_(ENODATA, "no data available")                            \
    X_(ETIME, "timer expired")                                  \
    X_(ENOSR, "out of stream resources")                        \
    X_(ENONET, "not on a network")                              \
    X_(ENOPKG, "package not installed")                         \
    X_(EREMOTE, "object is remote")                             \
    X_(ENOLINK, "link has been severed")                        \
    X_(EADV, "advertise error")                                 \
    X_(ESRMNT, "srmount error")                                 \
    X_(ECOMM, "communication error on send")                    \
    X_(EPROTO, "protocol error")                                \
    X_(EMULTIHOP, "multihop attempted")                         \
    X_(EDOTDOT, "RFS error")                                    \
    X_(EBADMSG, "bad message")                                  \
    X_(EOVERFLOW, "more than can be counted or kept")           \
    X_(ENOTUNIQ, "name not unique on the network")              \
    X_(EBADFD, "descriptor in a bad state")                     \
    X_(EREMCHG, "remote address changed")                       \
    X_(ELIBACC, "cannot access a shared library")               \
    X_(ELIBBAD, "corrupted shared library")                     \
    X_(ELIBSCN, "corrupted section of a shared library")        \
    X_(ELIBMAX, "too many shared libraries")                    \
    X_(ELIBEXEC, "cannot execute a shared library")             \
    X_(EILSEQ, "invalid byte sequence")                         \
    X_(ERESTART, "call must be restarted")                      \
    X_(ESTRPIPE, "streams pipe error")                          \
    X_(EUSERS, "too many users")                                \
    X_(ENOTSOCK, "not a socket")                                \
    X_(EDESTADDRREQ, "destination address required")            \
    X_(EMSGSIZE, "message too long")                            \
    X_(EPROTOTYPE, "wrong protocol for the socket")             \
    X_(ENOPROTOOPT, "protocol option not available")            \
    X_(EPROTONOSUPPORT, "protocol not supported")               \
    X_(ESOCKTNOSUPPORT, "socket type not supported")            \
    X_(EOPNOTSUPP, "operation not supported")                   \
    X_(EPFNOSUPPORT, "protocol family not supported")           \
    X_(EAFNOSUPPORT, "address family not supported")            \
    X_(EADDRINUSE, "address in use")                            \
    X_(EADDRNOTAVAIL, "address not available")                  \
    X_(ENETDOWN, "network is down")                             \
    X_(ENETUNREACH, "network unreachable")                      \
    X_(ENETRESET, "connection dropped by a network reset")      \
    X_(ECONNABORTED, "connection aborted")                      \
    X_(ECONNRESET, "connection reset by the other side")        \
    X_(ENOBUFS, "no buffer space left")                         \
    X_(EISCONN, "already connected")                            \
    X_(ENOTCONN, "not connected")                               \
    X_(ESHUTDOWN, "is shutting down")                           \
    X_(ETOOMANYREFS, "too many references")                     \
    X_(ETIMEDOUT, "timed out")                                  \
    X_(ECONNREFUSED, "connection refused")                      \
    X_(EHOSTDOWN, "host is down")                               \
    X_(EHOSTUNREACH, "no route to the host")                    \
    X_(EALREADY, "already in progress")                         \
    X_(EINPROGRESS, "in progress")                              \
    X_(ESTALE, "stale file handle")                             \
    X_(EUCLEAN, "structure needs cleaning")                     \
    X_(ENOTNAM, "not a XENIX named type file")                  \
    X_(ENAVAIL, "no XENIX semaphores available")                \
    X_(EISNAM, "is a named type file")                          \
    X_(EREMOTEIO, "remote input or output error")               \
    X_(EDQUOT, "disk quota exceeded")                           \
    X_(ENOMEDIUM, "no medium found")                            \
    X_(EMEDIUMTYPE, "wrong medium type")                        \
    X_(ECANCELED, "cancelled")                                  \
    X_(ENOKEY, "required key not available")                    \
    X_(EKEYEXPIRED, "key has expired")                          \
    X_(EKEYREVOKED, "key has been revoked")                     \
    X_(EKEYREJECTED, "key was rejected")                        \
    X_(EOWNERDEAD, "owner died")                                \
    X_(ENOTRECOVERABLE, "state not recoverable")                \
    X_(ERFKILL, "switched off by a radio kill switch")          \
    X_(EHWPOISON, "memory page has a hardware error")
// The texts lie one after another in a struct, in the order of `codes`. Arrays of char have no
// padding between them, so each text begins behind the terminator of the one before; `unknown` is
// the last. A table of pointers, or a switch, would take more space.
VOLT_API const char *volt_strerror(int rc) {
#define VOLT__ERROR_CODE(code_, text_) code_,
#define VOLT__ERROR_ROOM(code_, text_) char text_of_##code_[sizeof text_ " (" #code_ ")"];
#define VOLT__ERROR_TEXT(code_, text_) text_ " (" #code_ ")",
    static const uint16_t codes[] = { VOLT__ERRORS(VOLT__ERROR_CODE) };
    static const struct {
        VOLT__ERRORS(VOLT__ERROR_ROOM)
        char unknown[sizeof "unknown error"];
    } texts = { VOLT__ERRORS(VOLT__ERROR_TEXT) "unknown error" };
#undef VOLT__ERROR_CODE
#undef VOLT__ERROR_ROOM
#undef VOLT__ERROR_TEXT
    const void *first = &texts;
    const char *text = (const char *)first;
    if (rc >= 0) return "success";
#if EDEADLOCK != EDEADLK // on MIPS and PowerPC
    if (rc == -EDEADLOCK) return "file lock would deadlock (EDEADLOCK)";
#endif
    for (size_t i = 0; i < sizeof codes / sizeof codes[0] && rc + codes[i] != 0; i++)
        text += strlen(text) + 1;
    return text;
}

VOLT_API volt_time volt_now(void) { return VOLT_NOW_NS(); }

//==================================================================================================
// >>locks  futex lock, asymmetric fence, biased lock, parker
//==================================================================================================
// The locks that later sections use, and the parker of a blocked thread. Zeroed memory is a free
// lock, or a parker that is not set. Application code never runs under a lock that it could take.
//   futex lock   taken by any thread; neither recursive nor fair
//   biased lock  taken by its owner, which is one thread at a time; revoked by any other thread
//   parker       waited for by one thread, set by another one
// The store that frees a lock or sets a parker is the last access to the object, since the next
// holder, or the thread that waited, may free its memory. A later wake-up uses only the address.
// Under VOLT_SINGLE_THREAD a futex lock is a plain flag, and a parker never sleeps.
#ifdef VOLT_SINGLE_THREAD
static inline int volt__try_lock(uint32_t *lock) {
    uint32_t before = *lock;
    *lock = 1;
    return before == 0;
}
static inline int volt__lock_until(uint32_t *lock, int64_t deadline) {
    (void)deadline;
    return volt__try_lock(lock);
}
static inline void volt__lock(uint32_t *lock) {
    int is_free = volt__try_lock(lock);
    VOLT_ASSERT(is_free); // no application code runs under a lock that it could take
    (void)is_free;
}
static inline void volt__unlock(uint32_t *lock) { *lock = 0; }
static inline void volt__fence_light(const uint32_t *word) { (void)word; }
static inline void volt__fence_heavy(const uint32_t *word) { (void)word; }
#else
// ---- futex lock: 0 free, 1 held, 2 held and a thread may sleep
// Most locks are held for tens of instructions, so volt__lock spins before it sleeps.
//
// Unlock stores 0, then loads the waiter count, with no fence between the two. A thread that is
// about to sleep increments the count, calls membarrier(2), and then tries the lock once more. The
// call makes the unlocking thread pass the missing fence. If that thread loads the count after the
// fence, the load finds the waiter; if it loads the count before the fence, its store of 0 came
// before the fence as well, and the waiter finds the lock free. While the process is not registered
// for membarrier(2), unlock is an exchange, and finds the 2 of a waiter. A waiter prepares for both
// kinds of unlock: it counts itself and stores a 2.
//   word     event         to    done by
//   0        lock          1     cas
//   1, 2     wait          2     xchg by a counted waiter, which then sleeps while the word is 2
//   0        end of wait   2     xchg by the waiter, which then uncounts itself; others may sleep
//   1, 2     unlock        0     store, if registered; wakes a thread if one is counted
//   1, 2     unlock        0     xchg, if not registered; wakes a thread if the word was 2
// A waiter whose deadline has passed uncounts itself and leaves the 2, which may cause a needless
// wake-up.
#ifdef VOLT_NO_MEMBARRIER // each unlock is an exchange, and both halves of the fence are full
#  define volt__membarrier_prepare() ((void)0)
static inline int volt__has_membarrier(void) { return 0; }
static inline void volt__fence_light(uint32_t *word) { volt__fence_sc(word); } // [L2] with heavy
static inline void volt__fence_heavy(uint32_t *word) { volt__fence_sc(word); } // [L2] with light
static inline int volt__has_lock_waiters(const uint32_t *lock) { return (void)lock, 1; }
static inline void volt__lock_waiter_add(const uint32_t *lock) { (void)lock; }
static inline void volt__lock_waiter_remove(const uint32_t *lock) { (void)lock; }
#else
#define VOLT__LOCK_BUCKETS 64
static struct volt__lock_waiters {
    // any, set once [L2]: 1 if the process is registered for membarrier(2)
    VOLT__ALIGN(VOLT__CACHE_LINE) uint32_t has_membarrier;
    uint32_t n[VOLT__LOCK_BUCKETS]; // any, rmw [L2]: waiters at the locks of each bucket
} volt__lock_waiters;
// The address of a lock determines its bucket. If two locks share a bucket, the waiters of either
// cause needless wake-ups at the other.
static inline uint32_t *volt__lock_waiters_at(const uint32_t *lock) {
    return &volt__lock_waiters.n[(uintptr_t)lock / VOLT__CACHE_LINE % VOLT__LOCK_BUCKETS];
}
static inline int volt__has_membarrier(void) {
    return (int)volt__load_acq(&volt__lock_waiters.has_membarrier); // [L2] with prepare
}
// Registers the process for membarrier(2). Called when a runtime is created, before it has workers;
// other threads may hold or wait for locks already. If the registration fails, has_membarrier stays
// 0: each unlock is an exchange, and both halves of the fence are full.
static void volt__membarrier_prepare(void) {
    if (volt__has_membarrier() || VOLT_MEMBARRIER(VOLT__MEMBARRIER_REGISTER) < 0) return;
    volt__store_rel(&volt__lock_waiters.has_membarrier, 1); // [L2] with unlock
}
// The two halves of an asymmetric fence: light for the frequent side, heavy for the rare side. The
// heavy half makes all running threads pass a full fence between what its caller did before the
// call and what it does after. If the process is not registered yet, the kernel refuses that call.
// Then the fence of the heavy half is enough: a light half that does not see has_membarrier is a
// full fence too. One that sees it comes after the registration, and so after that fence: the loads
// behind it see what the caller of the heavy half has stored.
static inline void volt__fence_light(uint32_t *word) {
    if (VOLT__LIKELY(volt__has_membarrier())) volt__fence_compiler();
    else volt__fence_sc(word); // [L2] with heavy
}
// Called when the kernel refuses the call. If the process has been registered meanwhile, it permits
// the second one. If not, a seccomp filter was installed after the registration: light halves have
// no fence any more, so that wake-ups would be lost.
static __attribute__((noinline)) void volt__membarrier_refused(void) {
    if (!volt__has_membarrier() || VOLT_MEMBARRIER(VOLT__MEMBARRIER) == 0) return;
    VOLT_PANIC("volt: a filter refuses membarrier(2), which it permitted at first\n");
}
static void volt__fence_heavy(uint32_t *word) {
    volt__fence_sc(word); // [L2] with light, prepare
    if (VOLT_MEMBARRIER(VOLT__MEMBARRIER) < 0) volt__membarrier_refused();
}
static inline int volt__has_lock_waiters(const uint32_t *lock) {
    // rlx: ordered by the membarrier of the waiter [L2]
    return volt__load_rlx(volt__lock_waiters_at(lock)) != 0;
}
static void volt__lock_waiter_add(const uint32_t *lock) {
    uint32_t *n = volt__lock_waiters_at(lock);
    volt__add_acq_rel(n, 1); // [L2] with unlock
    volt__fence_heavy(n);
}
static void volt__lock_waiter_remove(const uint32_t *lock) {
    volt__sub_acq_rel(volt__lock_waiters_at(lock), 1); // [L2] with unlock
}
#endif
// Sleeps until the lock is free or the deadline has passed. Returns 1 with the lock held, else 0.
static __attribute__((noinline)) int volt__lock_sleep(uint32_t *lock, int64_t deadline) {
    int has_it;
    volt__lock_waiter_add(lock);
    while (!(has_it = volt__xchg_acq(lock, 2) == 0)) // [L1] with unlock
        if (VOLT_FUTEX_WAIT(lock, 2, deadline) == -ETIMEDOUT) break;
    volt__lock_waiter_remove(lock);
    return has_it;
}
static inline int volt__try_lock(uint32_t *lock) {
    uint32_t free_ = 0;
    return volt__cas_acq(lock, &free_, 1); // [L1] with unlock
}
static __attribute__((noinline)) void volt__lock_slow(uint32_t *lock) {
    for (int i = 0; i < VOLT_LOCK_TRIES; i++) {
        volt__spin_backoff(VOLT_LOCK_SPIN << i);
        // rlx: hint, re-checked by the cas
        if (volt__load_rlx(lock) == 0 && volt__try_lock(lock)) return;
    }
    (void)volt__lock_sleep(lock, VOLT_NEVER);
}
static inline void volt__lock(uint32_t *lock) {
    if (VOLT__UNLIKELY(!volt__try_lock(lock))) volt__lock_slow(lock);
}
// Does not spin. Returns 1 with the lock held, or 0 if the deadline has passed.
static int volt__lock_until(uint32_t *lock, int64_t deadline) {
    return volt__try_lock(lock) || volt__lock_sleep(lock, deadline);
}
// `was` is 0 if the lock is still held, or 2 if it is free already and a thread may sleep. A lock
// that is free may lie in freed memory. The wake-up is harmless then: it does not access the word,
// and a thread that it wakes at another object in that place checks that object again.
static __attribute__((noinline)) void volt__unlock_slow(uint32_t *lock, uint32_t was) {
    if (was == 0) was = volt__xchg_rel(lock, 0); // [L1] with lock
    if (was == 2) VOLT_FUTEX_WAKE(lock, 1);
}
static inline void volt__unlock(uint32_t *lock) {
    uint32_t was = 0;
    VOLT_ASSERT(volt__load_rlx(lock) != 0); // rlx: held by this thread
    if (VOLT__LIKELY(volt__has_membarrier())) {
        volt__store_rel(lock, 0); // [L1] with lock
        volt__fence_compiler();
        if (VOLT__LIKELY(!volt__has_lock_waiters(lock))) return;
        was = 2;
    }
    volt__unlock_slow(lock, was);
}
#endif

// ---- biased lock: its owner takes it often, another thread rarely
// The owner stores is_held, then loads `revoked`, with a light fence between the two. A revoking
// thread locks `revoked`, passes the heavy fence, then loads is_held. At least one of them sees the
// other. An owner that sees a revocation leaves is_held set and waits until the revocation ends. A
// revocation that sees is_held set gives up at once. In the table, `revoked` is 1 while that futex
// lock is held.
//   held  revoked   event     to      done by
//   0     0         lock      1, 0    owner: stores is_held, then finds `revoked` free
//   0     1         lock      1, 0    owner: stores is_held, then locks and unlocks `revoked`
//   1     any       unlock    0, any  owner: stores is_held
//   0     0         revoke    0, 1    any other thread: locks `revoked`, then finds is_held 0
//   1     0         revoke    1, 0    the same, but finds is_held 1 and unlocks `revoked` again
//   any   1         revoke    any, 1  another thread: cannot lock `revoked`, and gives up
//   any   1         rebias    any, 0  the thread that has revoked it: unlocks `revoked`
typedef struct volt__biased {
    uint32_t is_held; // W owner, R any [L3]
    uint32_t revoked; // futex lock, held during a revocation; R owner [L3]
} volt__biased;

static __attribute__((noinline, cold)) void volt__biased_wait(volt__biased *b) {
    volt__lock(&b->revoked); // later revocations see is_held, which is 1
    volt__unlock(&b->revoked);
}
static inline void volt__biased_lock(volt__biased *b) {
    volt__store_rlx(&b->is_held, 1); // rlx: ordered by the heavy fence of revoke [L3]
    volt__fence_light(&b->is_held);
    if (VOLT__UNLIKELY(volt__load_acq(&b->revoked) != 0)) // [L3] with revoke, rebias
        volt__biased_wait(b);
}
static inline void volt__biased_unlock(volt__biased *b) {
    volt__store_rel(&b->is_held, 0); // [L3] with revoke
}
// Returns 1 if the caller has revoked the lock: the owner cannot take it until the caller calls
// volt__biased_rebias. Returns 0 if the lock is held, or revoked already.
static int volt__biased_revoke(volt__biased *b) {
    if (!volt__try_lock(&b->revoked)) return 0;
    volt__fence_heavy(&b->revoked);
    if (!volt__load_acq(&b->is_held)) return 1; // [L3] with unlock
    volt__unlock(&b->revoked);
    return 0;
}
// Ends the revocation by the caller.
static void volt__biased_rebias(volt__biased *b) { volt__unlock(&b->revoked); }

// ---- parker: a word on which one thread sleeps until another one sets it
static void volt__parker_set(volt__parker *p) {
    uint32_t *word = &p->is_set;
    volt__store_rel(word, 1); // [P1] with wait. LAST TOUCH: the waiting thread may return
    VOLT_FUTEX_WAKE(word, 1);
}
// Returns 0 if the parker is set, or -ETIMEDOUT. Does not reset it.
static int volt__parker_wait(volt__parker *p, volt_time deadline) {
    while (!volt__load_acq(&p->is_set)) // [P1] with set
        if (VOLT_FUTEX_WAIT(&p->is_set, 0, deadline) == -ETIMEDOUT)
            return volt__load_acq(&p->is_set) ? 0 : -ETIMEDOUT; // [P1] with set
    return 0;
}

//==================================================================================================
// >>slab  slabs for tasks: one heap per worker, remote frees pushed back to the owner
//==================================================================================================
// The slab allocator of tasks. Each worker owns a heap, from which its spawns are allocated.
// Threads that are not workers share a few outside heaps: each has a lock, and the thread that
// holds it counts as the owner. Any thread may free a task: unless it owns the heap, it pushes the
// slot to the heap's remote list, from which the owner collects it. A walker visits the slots of
// all slabs, for a dump or a shutdown.
//   - A slab is aligned to VOLT_SLAB_SIZE, and each of its slots begins in its first VOLT_SLAB_SIZE
//     bytes. So masking a task's address finds the slab, which stores the runtime, the heap and the
//     size class for all of its tasks.
//   - A slot is carved, that is, first used, only when its slab has no freed slot. So pages that
//     were never used are never touched.
//   - The word of a free slot has no references, which tells walkers that it is not a live task.
//   - A slab is the current one of its class, or on the class's list of partial or of empty slabs.
//     A full or large slab is on neither list. Every slab is also on the runtime's list of slabs.
//   - The allocator hooks are application code. They are called without the lock of a heap and
//     without slabs.lock.
//
//   operation          by                                           during a walk
//   alloc, free_local  the owner                                    allowed
//   free_remote        any thread                                   allowed
//   create a slab      any thread                                   waits for slabs.lock
//   destroy a slab     any thread, after the owner has unlinked it  waits for slabs.lock

// The header of a task; its state follows it. `wait` and `wait_ms` are valid while the task waits,
// that is, neither runs nor is queued. Otherwise they are left over from an earlier wait or an
// earlier task of the slot. With VOLT_TRACE wait_ms has another value from a wake-up to the next
// poll: see >>trace.
struct volt__task {
    VOLT__ALIGN(8)               // on i386 an int64_t alone is aligned to 4
    uintptr_t word;              // any, rmw [T1] [T2]: state bits and references, see >>task
    volt__task *next;            // owner: holder of the queue, chain or free list that it links
    union {
        volt_fn *fn;             // W spawner, runner: the function, until the task ends
        int64_t result;          // W runner, before it publishes the end [T3]
    } u;
    void *join;                  // any, rmw [T3]: join word, see >>finish; only with HAS_HANDLE
    const char *spawn_site;      // W spawner, runner, R any (hint): file:line of spawn, or name
    const char *wait_site;       // W spawner, runner, R any (hint): innermost await, or spawn
    uint32_t wait, wait_ms;      // W runner, R any (hint): its kind and argument; its start
    uint32_t spawn_ms;           // W spawner, R any (hint): time of the spawn, ms since the epoch
    uint8_t shield_depth, flags; // spawner; from the first poll on only the runner
    uint16_t n_armed;            // runner: number of nodes that are not IDLE, see >>node
};
// The smallest task, a header and a frame, is 112 bytes on 64 bits. The layouts checked below are
// those that copies of several fields at once rely on.
VOLT__SASSERT(sizeof(volt__node) == (sizeof(void *) == 8 ? 48 : 32), "an idle task is 112 bytes");
VOLT__SASSERT(sizeof(volt__task) == (sizeof(void *) == 8 ? 64 : 48), "an idle task is 112 bytes");
VOLT__SASSERT(offsetof(volt_cx, shield_depth_) == offsetof(volt_cx, wait_) + 7,
              "fresh poll layout");
VOLT__SASSERT(offsetof(volt__node, key_) == 8 && offsetof(volt__node, state_) == 4, "node layout");
VOLT__SASSERT(offsetof(volt__task, u) == (sizeof(void *) == 8 ? 16 : 8), "task layout");
VOLT__SASSERT(sizeof(volt_arm) <= 72 && sizeof(volt_token_link) == sizeof(volt_frame),
              "public layout");
VOLT__SASSERT(sizeof(volt_timer) == sizeof(volt_frame) && sizeof(volt_handle) == sizeof(void *),
              "public layout");

// The link of a group's member, at the end of the slot of a task with HAS_GROUP_LINK. It lies
// behind the state and not before the header, so that every header is at a multiple of the slot
// size, where walkers find it.
typedef struct volt__group_link {
    volt_group *group;            // once
    volt__task *g_next, *g_prev;  // under lock_ of the group
    uint64_t id;                  // under lock_ of the group: spawn order
} volt__group_link;

typedef struct volt__heap volt__heap;
typedef struct volt__slab {
    volt_rt *rt;                            // once
    volt__heap *heap;                       // once
    struct volt__slab *next, *prev;         // heap owner: partial list; next: empty, dead list
    struct volt__slab *all_next, *all_prev; // under slabs.lock: list of all slabs
    volt__task *free;                       // heap owner: free slots that were used before
    uint32_t cls, slot_size, cap;           // once: class, bytes per slot, number of slots
    uint32_t used;                          // heap owner: slots in use; not counted while CURRENT
    uint32_t carved;                        // W heap owner, R walkers [M2]: slots carved so far
    uint32_t state;                         // heap owner: VOLT__SLAB_FULL, _PARTIAL, _CURRENT
    uint32_t serial;                        // once: number of the slab in its runtime, from 1
    size_t bytes;                           // once: size of the whole slab
} volt__slab;
// FULL: neither of the other two. The slab is full, empty or large, or was just created. PARTIAL:
// on the partial list of its class. CURRENT: its class allocates from it.
enum { VOLT__SLAB_FULL, VOLT__SLAB_PARTIAL, VOLT__SLAB_CURRENT };
#define VOLT__SLAB_HEAD 128 // offset of the first slot
#define VOLT__CLASSES 32
VOLT__SASSERT(sizeof(volt__slab) <= VOLT__SLAB_HEAD, "slab header");

// All slabs of a runtime, of all heaps.
typedef struct volt__slabs {
    uint32_t lock;
    uint32_t n_created;   // under lock: slabs ever created
    uint32_t n_destroyed; // under lock: slabs ever destroyed
    volt__slab *first;    // under lock: the newest one
    volt_allocator alloc; // once
    volt_rt *rt;          // once
} volt__slabs;

// The slabs of one slot size in a heap. A trim keeps as many empty slabs as would be needed to
// reach the peak since the last trim again, and destroys the others: a load that rises and falls
// does not create and destroy slabs all the time.
typedef struct volt__class {
    volt__slab *current;           // the slab to allocate from, or NULL; on no list
    volt__slab *partial;           // list of slabs with both used and free slots
    volt__slab *empty;             // list of slabs without used slots
    // n_used: slabs with used slots, and the current one. n_used_max: its peak since the last trim
    uint32_t n_used, n_used_max, n_empty;
} volt__class;
struct volt__heap {
    volt__slabs *slabs;             // once
    uint32_t lock;                  // used by outside heaps only: its holder is the owner
    volt__class cls[VOLT__CLASSES]; // owner
    VOLT__ALIGN(VOLT__CACHE_LINE) volt__task *remote; // any, rmw [M1]: list; owner takes all
};

// The state of a free slot is poisoned, so the address sanitizer reports accesses to a freed task.
// The header stays accessible, for walkers and free lists.
#if defined(__SANITIZE_ADDRESS__)
#  define VOLT__ASAN 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define VOLT__ASAN 1
#  endif
#endif
#ifdef VOLT__ASAN
#  include <sanitizer/asan_interface.h>
#  define VOLT__POISON(p_, n_) __asan_poison_memory_region(p_, n_)
#  define VOLT__UNPOISON(p_, n_) __asan_unpoison_memory_region(p_, n_)
#else
#  define VOLT__POISON(p_, n_) ((void)0)
#  define VOLT__UNPOISON(p_, n_) ((void)0)
#endif

// Returns the class of a slot size: steps of 16 bytes up to 128, then four classes per doubling.
// The two bits below the highest one of size - 1 select one of the four.
static inline uint32_t volt__class_of(size_t size) {
    if (size <= 128) return (uint32_t)((size + 15) / 16 - 1);
    int top = volt__highest_bit(size - 1);
    return (uint32_t)(8 + (top - 7) * 4 + (int)((size - 1) >> (top - 2) & 3));
}
// Returns the slot size of a class, the largest size that volt__class_of maps to it.
static inline uint32_t volt__class_size(uint32_t cls) {
    return cls < 8 ? (cls + 1) * 16 : (5 + (cls - 8) % 4) << ((cls - 8) / 4 + 5);
}

static inline volt__slab *volt__slab_of(const volt__task *t) {
    return (volt__slab *)((uintptr_t)t & ~(uintptr_t)(VOLT_SLAB_SIZE - 1));
}
// Maps the index of a slot in carve order to its position in the slab, and back: 9 * 9 mod 16 is 1,
// so the map is its own inverse. It spreads the first 16 slots, so that a few tasks, run by several
// workers, share no cache lines.
static inline uint32_t volt__slab_shuffle(const volt__slab *s, uint32_t i) {
    return i < 16 && s->cap >= 16 ? i * 9 & 15 : i;
}
// Returns slot i, in carve order.
static inline volt__task *volt__slab_slot(volt__slab *s, uint32_t i) {
    VOLT_ASSERT(i < s->cap);
    i = volt__slab_shuffle(s, i);
    char *base = (char *)(void *)s + VOLT__SLAB_HEAD;
    return (volt__task *)(void *)(base + (size_t)i * s->slot_size);
}
static inline void *volt__task_state(volt__task *t) { return t + 1; }
static inline volt__task *volt__state_task(void *state) {
    return (volt__task *)state - 1;
}
static inline volt__group_link *volt__task_group_link(volt__task *t) {
    char *end = (char *)(void *)t + volt__slab_of(t)->slot_size;
    return (volt__group_link *)(void *)(end - sizeof(volt__group_link));
}

static void volt__heap_init(volt__heap *h, volt__slabs *slabs) {
    memset(h, 0, sizeof *h);
    h->slabs = slabs;
}

static void volt__partial_link(volt__class *c, volt__slab *s) {
    VOLT_ASSERT(s->state == VOLT__SLAB_FULL && s->used < s->cap);
    s->state = VOLT__SLAB_PARTIAL;
    s->prev = NULL;
    s->next = c->partial;
    if (s->next) s->next->prev = s;
    c->partial = s;
}
static void volt__partial_unlink(volt__class *c, volt__slab *s) {
    VOLT_ASSERT(s->state == VOLT__SLAB_PARTIAL && c->partial != NULL);
    s->state = VOLT__SLAB_FULL;
    if (s->prev) s->prev->next = s->next;
    else c->partial = s->next;
    if (s->next) s->next->prev = s->prev;
}

static void volt__empty_push(volt__class *c, volt__slab *s) {
    VOLT_ASSERT(s->state == VOLT__SLAB_FULL && s->used == 0);
    s->next = c->empty;
    c->empty = s;
    c->n_empty++;
}
static volt__slab *volt__empty_pop(volt__class *c) {
    volt__slab *s = c->empty;
    if (!s) return NULL;
    c->empty = s->next;
    c->n_empty--;
    return s;
}

// Creates a slab of class `cls`. If that is VOLT__CLASSES the slab is a large one, with a single
// slot. Returns NULL if out of memory. Calls a hook: called without a lock.
static volt__slab *volt__slab_create(volt__heap *h, uint32_t cls, uint32_t slot_size) {
    size_t bytes = VOLT_SLAB_SIZE;
    if (cls >= VOLT__CLASSES) bytes = VOLT__SLAB_HEAD + (size_t)slot_size;
    volt__slabs *all = h->slabs;
    volt__slab *s = (volt__slab *)all->alloc.alloc(all->alloc.user, bytes, VOLT_SLAB_SIZE);
    if (!s) return NULL;
    VOLT__REQUIRE(((uintptr_t)s & (VOLT_SLAB_SIZE - 1)) == 0,
                  ".alloc returned a block that is not aligned as requested");
    memset(s, 0, sizeof *s);
    s->rt = all->rt;
    s->heap = h;
    s->cls = cls;
    s->slot_size = slot_size;
    s->cap = (uint32_t)((bytes - VOLT__SLAB_HEAD) / slot_size);
    VOLT_ASSERT(s->cap > 0 && s->state == VOLT__SLAB_FULL);
    s->bytes = bytes;
    volt__lock(&all->lock);
    s->serial = ++all->n_created;
    s->all_next = all->first;
    if (s->all_next) s->all_next->all_prev = s;
    all->first = s;
    volt__unlock(&all->lock);
    return s;
}
static void volt__slab_destroy(volt__slab *s) {
    volt__slabs *all = s->heap->slabs;
    volt__lock(&all->lock);
    all->n_destroyed++;
    if (s->all_prev) s->all_prev->all_next = s->all_next;
    else all->first = s->all_next;
    if (s->all_next) s->all_next->all_prev = s->all_prev;
    volt__unlock(&all->lock);
    VOLT__UNPOISON(s, s->bytes);
    all->alloc.free(all->alloc.user, s, s->bytes);
}

// Destroys a list of slabs, linked through `next`. Calls a hook: called without a lock. A function
// that may run under a lock does not destroy slabs, but adds them to such a list, *dead, and its
// caller destroys them.
static void volt__slabs_reap(volt__slab *dead) {
    while (dead) {
        volt__slab *next = dead->next;
        volt__slab_destroy(dead);
        dead = next;
    }
}
// Adds a slot to the free list of its slab. Returns 1 if the caller must then call
// volt__slab_state_changed, since the slab was full or large, or is empty now; else 0. Called by
// the owner.
static inline int volt__slab_free(volt__slab *s, volt__task *t) {
    VOLT_ASSERT(((uintptr_t)t - (uintptr_t)s - VOLT__SLAB_HEAD) % s->slot_size == 0);
    VOLT__POISON(t + 1, s->slot_size - sizeof *t);
    t->next = s->free;
    s->free = t;
    if (VOLT__LIKELY(s->state == VOLT__SLAB_CURRENT)) return 0;
    VOLT_ASSERT(s->used > 0 && s->used <= s->cap);
    return --s->used == 0 || s->state == VOLT__SLAB_FULL;
}
// Moves a slab to its new list, after volt__slab_free has returned 1. A large slab goes to *dead.
static void volt__slab_state_changed(volt__heap *h, volt__slab *s, volt__slab **dead) {
    if (s->cls >= VOLT__CLASSES) {
        s->next = *dead;
        *dead = s;
        return;
    }
    volt__class *c = &h->cls[s->cls];
    if (s->used == 0) c->n_used--;
    if (s->state == VOLT__SLAB_FULL) volt__partial_link(c, s);
    if (s->used > 0) return;
    volt__partial_unlink(c, s);
    volt__empty_push(c, s);
}
// Frees a slot of the caller's own heap. Destroys nothing: a large slab goes to *dead.
static void volt__heap_free(volt__heap *h, volt__task *t, volt__slab **dead) {
    volt__slab *s = volt__slab_of(t);
    VOLT_ASSERT(s->heap == h);
    if (volt__slab_free(s, t)) volt__slab_state_changed(h, s, dead);
}
// Removes the empty slabs that the peak since the last trim did not need, and returns them as a
// list, which the caller destroys. Called by the owner.
static volt__slab *volt__heap_trim(volt__heap *h) {
    volt__slab *dead = NULL;
    for (uint32_t i = 0; i < VOLT__CLASSES; i++) {
        volt__class *c = &h->cls[i];
        VOLT_ASSERT(c->n_used_max >= c->n_used);
        const uint32_t keep = c->n_used_max - c->n_used;
        for (volt__slab *s; c->n_empty > keep && (s = volt__empty_pop(c)) != NULL;) {
            s->next = dead;
            dead = s;
        }
        c->n_used_max = c->n_used;
    }
    return dead;
}
static __attribute__((noinline)) void volt__slab_state_changed_reap(volt__heap *h, volt__slab *s) {
    volt__slab *dead = NULL;
    volt__slab_state_changed(h, s, &dead);
    volt__slabs_reap(dead);
}
// As volt__heap_free, but destroys a large slab at once. Called by the owner, without a lock.
static inline void volt__heap_free_local(volt__heap *h, volt__task *t) {
    volt__slab *s = volt__slab_of(t);
    VOLT_ASSERT(s->heap == h);
    if (VOLT__UNLIKELY(volt__slab_free(s, t))) volt__slab_state_changed_reap(h, s);
}
// Pushes the slots from `first` to `last`, linked through `next`, to the heap's remote list. Called
// by any thread. A head that was taken and pushed again in between (ABA) does no harm: the list is
// only ever taken as a whole.
static void volt__heap_remote_free_list(volt__heap *h, volt__task *first, volt__task *last) {
    volt__task *head = volt__load_rlx(&h->remote); // rlx: hint, re-checked by the CAS
    VOLT_ASSERT(head != first);
    do last->next = head;
    // [M1] with collect. LAST TOUCH: the slots may be in use again
    while (!volt__cas_rel(&h->remote, &head, first));
}
static void volt__heap_free_remote(volt__task *t) {
    volt__heap_remote_free_list(volt__slab_of(t)->heap, t, t);
}
// Slots of one other heap that a worker has freed but not yet pushed to that heap's remote list.
// They are pushed in batches, since each push is an RMW on a cache line that the owner of the heap
// uses.
typedef struct volt__remote_batch {
    volt__heap *heap;
    volt__task *first, *last;
    uint32_t n;
} volt__remote_batch;
static void volt__remote_batch_flush(volt__remote_batch *batch) {
    if (batch->n == 0) return;
    batch->n = 0;
    volt__heap_remote_free_list(batch->heap, batch->first, batch->last);
}
static void volt__remote_batch_add(volt__remote_batch *batch, volt__task *t) {
    volt__slab *s = volt__slab_of(t);
    if (s->heap != batch->heap) volt__remote_batch_flush(batch);
    batch->heap = s->heap;
    if (batch->n == 0) batch->last = t;
    else t->next = batch->first;
    batch->first = t;
    batch->n++;
    // big slots are pushed at once: a few of them, held back, keep a whole slab from being reused
    if (batch->n >= VOLT_REMOTE_BATCH || s->cap < VOLT_REMOTE_BATCH)
        volt__remote_batch_flush(batch);
}
// Frees the slots that other threads have pushed. Called by the owner.
static void volt__heap_collect(volt__heap *h, volt__slab **dead) {
    if (!volt__load_rlx(&h->remote)) return; // rlx: hint; a later call finds them
    // [M1] with remote_free_list
    volt__task *t = volt__xchg_acq(&h->remote, (volt__task *)NULL);
    while (t) {
        volt__task *next = t->next;
        volt__heap_free(h, t, dead);
        t = next;
    }
}
// Collects, and destroys the large slabs among the collected. Called by the owner, without a lock.
static void volt__heap_drain(volt__heap *h) {
    volt__slab *dead = NULL;
    volt__heap_collect(h, &dead);
    volt__slabs_reap(dead);
}

// Collects and trims an outside heap, whose lock it takes. Called by workers.
static void volt__heap_trim_shared(volt__heap *h) {
    volt__slab *dead = NULL, *large = NULL;
    volt__lock(&h->lock);
    volt__heap_collect(h, &large);
    dead = volt__heap_trim(h);
    volt__unlock(&h->lock);
    volt__slabs_reap(large);
    volt__slabs_reap(dead);
}
// Takes the next slot that was never used. Returns NULL if there is none.
static volt__task *volt__slab_carve(volt__slab *s) {
    VOLT_ASSERT(!s->free && s->carved <= s->cap);
    if (s->carved == s->cap) return NULL;
    volt__task *t = volt__slab_slot(s, s->carved);
    memset(t, 0, sizeof *t);
    // [M2] the word is zeroed before a walker can see the slot
    volt__store_rel(&s->carved, s->carved + 1);
    return t;
}
static volt__task *volt__slab_alloc(volt__slab *s) {
    volt__task *t = s->free;
    if (t) s->free = t->next;
    else if ((t = volt__slab_carve(s)) == NULL) return NULL;
    VOLT__UNPOISON(t + 1, s->slot_size - sizeof *t);
    return t;
}
// Makes s the current slab. The old one is full, and is on no list until one of its slots is freed.
// Allocating and freeing slots of the current slab is the hot path and updates no count. So this
// slab counts as used even if none of its slots is.
static void volt__class_set_current(volt__class *c, volt__slab *s) {
    volt__slab *old = c->current;
    VOLT_ASSERT(s->state == VOLT__SLAB_FULL && s != old);
    VOLT_ASSERT(!old || (!old->free && old->carved == old->cap));
    if (old) {
        old->state = VOLT__SLAB_FULL;
        old->used = old->cap;
    }
    if (s->used == 0 && ++c->n_used > c->n_used_max) c->n_used_max = c->n_used;
    s->state = VOLT__SLAB_CURRENT;
    c->current = s;
}
static volt__task *volt__class_alloc(volt__class *c) {
    return c->current ? volt__slab_alloc(c->current) : NULL;
}
// Allocates when the current slab has no slot left. Collects the slots that other threads have
// pushed, and tries the current slab again; then makes a partial or an empty slab the current one.
// Returns NULL if there is none. Calls no hook, so it may run under the lock of an outside heap.
static volt__task *volt__heap_refill(volt__heap *h, uint32_t cls, volt__slab **dead) {
    volt__class *c = &h->cls[cls];
    volt__heap_collect(h, dead);
    volt__task *t = volt__class_alloc(c);
    volt__slab *s;
    if (t) return t;
    if ((s = c->partial) != NULL) volt__partial_unlink(c, s);
    else if ((s = volt__empty_pop(c)) == NULL) return NULL;
    volt__class_set_current(c, s);
    return volt__slab_alloc(s);
}
// Allocates a slot that is too large for the classes, in a slab of its own. Returns NULL if out of
// memory. Called without a lock.
static volt__task *volt__heap_alloc_large(volt__heap *h, size_t size) {
    if (size > UINT32_MAX / 2) return NULL;
    volt__slab *s = volt__slab_create(h, VOLT__CLASSES, (uint32_t)((size + 15) & ~(size_t)15));
    if (!s) return NULL;
    s->used = 1;
    return volt__slab_alloc(s);
}
// Allocates a slot of at least `size` bytes, header included. Its word has no references; all else
// is undefined. Returns NULL if out of memory. Called by the owner, a worker, without a lock.
static volt__task *volt__heap_alloc(volt__heap *h, size_t size) {
    if (size > VOLT_SLAB_SIZE / 8) {
        volt__heap_drain(h); // destroys large slabs whose slots other threads have freed
        return volt__heap_alloc_large(h, size);
    }
    uint32_t cls = volt__class_of(size);
    VOLT_ASSERT(cls < VOLT__CLASSES && volt__class_size(cls) >= size);
    volt__class *c = &h->cls[cls];
    for (;;) {
        volt__slab *dead = NULL, *s;
        volt__task *t = volt__class_alloc(c);
        if (!t) t = volt__heap_refill(h, cls, &dead);
        volt__slabs_reap(dead);
        if (t) return t;
        s = volt__slab_create(h, cls, volt__class_size(cls)); // its hook may free or take slots
        if (!s) return NULL;
        volt__empty_push(c, s);
    }
}
// The fast path of volt__heap_alloc, for sizes within the classes. Takes a freed slot of the
// current slab. Returns NULL if there is none: volt__heap_alloc may still find a slot.
static inline volt__task *volt__heap_alloc_fast(volt__heap *h, size_t size) {
    VOLT_ASSERT(size <= VOLT_SLAB_SIZE / 8);
    volt__slab *s = h->cls[volt__class_of(size)].current;
    volt__task *t = s ? s->free : NULL;
    if (VOLT__UNLIKELY(!t)) return NULL;
    VOLT_ASSERT(volt__slab_of(t) == s && s->slot_size >= size && s->heap == h);
    s->free = t->next;
    VOLT__UNPOISON(t + 1, s->slot_size - sizeof *t);
    return t;
}
// The same as volt__heap_alloc, but for an outside heap, whose lock it takes. Called by threads
// that are not workers of the runtime.
static volt__task *volt__heap_alloc_shared(volt__heap *h, size_t size) {
    if (size > VOLT_SLAB_SIZE / 8) {
        volt__slab *large = NULL;
        volt__lock(&h->lock);
        volt__heap_collect(h, &large);
        volt__unlock(&h->lock);
        volt__slabs_reap(large);
        return volt__heap_alloc_large(h, size);
    }
    uint32_t cls = volt__class_of(size);
    for (;;) {
        volt__slab *dead = NULL, *s;
        volt__lock(&h->lock);
        volt__class *c = &h->cls[cls];
        volt__task *t = volt__class_alloc(c);
        if (!t) t = volt__heap_refill(h, cls, &dead);
        volt__unlock(&h->lock);
        volt__slabs_reap(dead);
        if (t) return t;
        s = volt__slab_create(h, cls, volt__class_size(cls));
        if (!s) return NULL;
        volt__lock(&h->lock);
        volt__empty_push(c, s);
        volt__unlock(&h->lock);
    }
}

// Destroys all slabs, even those with live tasks. Called once no other thread uses them, and before
// the heaps, which this reads, are freed.
static void volt__slabs_destroy(volt__slabs *all) {
    while (all->first) volt__slab_destroy(all->first);
}

//==================================================================================================
// >>queues  node lists, task chains, injector, overflow queue, ring
//==================================================================================================
// The lists of nodes and the queues of runnable tasks. A task is in at most one queue: each time
// NOTIFIED is set in its word, exactly one thread enqueues it (see >>task). Queues hold no
// references to their tasks.
//   structure          used by                                 protected by
//   node list          the object that the nodes wait for      the lock of that object
//   chain              one thread                              -
//   injector, inbox    any thread pushes, workers pop          its lock
//   overflow queue     its worker pushes, any worker pops      its lock
//   ring               its worker pushes and pops, others      atomic operations; claimed tasks:
//                      steal                                   the biased lock of the worker
// Any thread may read the length of a queue or the tail of a ring without a lock. Both are stored
// only after the tasks are in place, so a thread that sees a task counted can pop it, unless
// another thread pops it first. A rescuer is the worker that takes the tasks of a stuck one: see
// >>watchdog.

// ---- node lists
// A list is circular: *head is the first node, and (*head)->prev_ is the last one. *head of an
// empty list is NULL. A push appends. The functions are called under the lock of the object that
// owns the list.
static void volt__list_push(volt__node **head, volt__node *node) {
    if (!*head) {
        node->next_ = node->prev_ = node;
        *head = node;
        return;
    }
    node->next_ = *head;
    node->prev_ = (*head)->prev_;
    node->prev_->next_ = node;
    node->next_->prev_ = node;
}
static void volt__list_remove(volt__node **head, volt__node *node) {
    VOLT_ASSERT(node->next_->prev_ == node && node->prev_->next_ == node);
    if (node->next_ == node) {
        *head = NULL;
    } else {
        node->next_->prev_ = node->prev_;
        node->prev_->next_ = node->next_;
        if (*head == node) *head = node->next_;
    }
    node->next_ = node->prev_ = NULL;
}

// ---- chains
// Tasks linked through `next`. The thread that holds a chain owns the NOTIFIED bits of its tasks:
// it has to enqueue them.
typedef struct volt__chain {
    volt__task *head, *tail;
    uint32_t len;
} volt__chain;
static inline void volt__chain_init(volt__chain *c) {
    c->head = c->tail = NULL;
    c->len = 0;
}
static inline void volt__chain_push(volt__chain *c, volt__task *t) {
    VOLT_ASSERT(t != NULL && t != c->tail && !c->head == !c->tail);
    t->next = NULL;
    if (c->tail) c->tail->next = t;
    else c->head = t;
    c->tail = t;
    c->len++;
}
static inline volt__task *volt__chain_pop(volt__chain *c) {
    volt__task *t = c->head;
    if (!t) return NULL;
    c->head = t->next;
    if (!c->head) c->tail = NULL;
    VOLT_ASSERT(c->len > 0);
    c->len--;
    return t;
}
// Moves all tasks of *more, which is not empty, to the end of *c. *more is not used afterwards.
static void volt__chain_append(volt__chain *c, const volt__chain *more) {
    VOLT_ASSERT(more->head && !more->tail->next);
    if (c->tail) c->tail->next = more->head;
    else c->head = more->head;
    c->tail = more->tail;
    c->len += more->len;
}
// Moves the first n tasks of *c, the last of which is `last`, to *first, which is overwritten.
static inline void volt__chain_split(volt__chain *c, volt__task *last, uint32_t n,
                                     volt__chain *first) {
    VOLT_ASSERT(n <= c->len);
    first->head = c->head;
    first->tail = last;
    first->len = n;
    c->head = last->next;
    if (!c->head) c->tail = NULL;
    c->len -= n;
    last->next = NULL;
}

// ---- injector
// A FIFO of tasks that any worker may take. A runtime has one injector: for tasks that come from
// outside the workers, that no ring has room for, or that a worker passes on. With .placement each
// worker also has an inbox, which is another injector. The operations exclude each other by `lock`;
// each takes effect when it releases the lock. is_empty takes no lock. If it races with an
// operation, it may still return the result from before that operation:
//   operation  by                            if closed             is_empty may still return
//   push       any thread                    allowed               1, but not to the pusher [Q3]
//   spawn      not a worker of the runtime   refused, not counted  1, but not to the pusher [Q3]
//   pop        a worker of the runtime       allowed               0: the next pop finds nothing
//   close      any thread, at a shutdown     no effect             -
typedef struct volt__injector {
    VOLT__ALIGN(VOLT__CACHE_LINE) uint32_t lock;
    uint32_t closed;          // under lock: spawns from outside fail; pushes are still accepted
    uintptr_t len;            // W under lock, R any [Q3]: number of tasks
    volt__task *head, *tail;  // under lock
    uint64_t spawned;         // under lock: number of tasks spawned from outside
} volt__injector;

static inline int volt__injector_is_empty(const volt__injector *q) {
    return volt__load_acq(&q->len) == 0; // [Q3] a task that is counted can be popped
}
// Appends the tasks of *c, which is not empty. Called under lock.
static void volt__injector_link(volt__injector *q, volt__chain *c) {
    VOLT_ASSERT(c->head && !c->tail->next && !q->head == !q->tail);
    if (q->tail) q->tail->next = c->head;
    else q->head = c->head;
    q->tail = c->tail;
    volt__store_rel(&q->len, q->len + c->len); // [Q3] with is_empty
}
static void volt__injector_push(volt__injector *q, volt__chain *c) {
    if (!c->head) return;
    volt__lock(&q->lock);
    volt__injector_link(q, c);
    volt__unlock(&q->lock);
}
// Counts a spawn from outside and enqueues its task. If task_or_null is NULL, only counts: the task
// starts later. Returns 1, or 0 if the injector is closed: then it has done nothing.
static int volt__injector_spawn(volt__injector *q, volt__task *task_or_null) {
    volt__chain c;
    volt__chain_init(&c);
    if (task_or_null) volt__chain_push(&c, task_or_null);
    volt__lock(&q->lock);
    int ok = !q->closed;
    if (ok) {
        q->spawned++;
        if (task_or_null) volt__injector_link(q, &c);
    }
    volt__unlock(&q->lock);
    return ok;
}
// From now on volt__injector_spawn gives 0; pushes go on.
static void volt__injector_close(volt__injector *q) {
    volt__lock(&q->lock);
    q->closed = 1;
    volt__unlock(&q->lock);
}
// Moves the share of one of n_workers workers to the end of *c: min(len / n_workers + 1, room,
// VOLT_INJECT_BATCH) tasks, or all if there are fewer. Returns their number.
static uint32_t volt__injector_pop(volt__injector *q, uint32_t n_workers, uint32_t room,
                                   volt__chain *c) {
    if (volt__injector_is_empty(q)) return 0;
    volt__lock(&q->lock);
    uint32_t n = volt__min32((uint32_t)q->len / n_workers + 1, room);
    n = volt__min32(n, VOLT_INJECT_BATCH);
    uint32_t got = 0;
    for (; got < n && q->head; got++) {
        volt__task *t = q->head;
        q->head = t->next;
        if (!q->head) q->tail = NULL;
        volt__chain_push(c, t);
    }
    VOLT_ASSERT(got <= q->len && (q->len == got) == !q->head);
    volt__store_rel(&q->len, q->len - got); // [Q3] with is_empty
    volt__unlock(&q->lock);
    return got;
}

// ---- overflow queue
// Batches of tasks that did not fit into a worker's ring. The worker takes the newest batch first.
// If tasks spawn tasks, their tree is then walked depth first, so few tasks exist at a time, and
// those are in the cache. Thieves take from the oldest batch, whose tasks have the largest
// subtrees. As in an injector, the operations exclude each other by `lock` and take effect when
// they release it, and is_empty takes no lock:
//   operation  by                     is_empty may still return
//   push       owner                  1, but not to the owner [Q3]
//   pop        owner, thieves         0: the next pop finds nothing
//   pop_all    owner, rescuer         0: the next pop finds nothing
typedef struct volt__overflow {
    VOLT__ALIGN(VOLT__CACHE_LINE) uint32_t lock;
    uint32_t oldest, n;                   // under lock: index of the oldest batch; batches in use
    uint32_t len;                         // W under lock, R any [Q3]: tasks in all batches
    volt__chain batch[VOLT_OVERFLOW_CAP]; // under lock; indices are modulo the capacity
} volt__overflow;
VOLT__SASSERT((VOLT_OVERFLOW_CAP & (VOLT_OVERFLOW_CAP - 1)) == 0 && VOLT_OVERFLOW_CAP > 1,
              "power of two");
typedef enum volt__overflow_end { VOLT__OLDEST, VOLT__NEWEST } volt__overflow_end;

static inline int volt__overflow_is_empty(const volt__overflow *overflow) {
    return volt__load_acq(&overflow->len) == 0; // [Q3] a task that is counted can be popped
}
// Returns batch i, counted from the oldest. Called under lock.
static volt__chain *volt__overflow_batch(volt__overflow *overflow, uint32_t i) {
    return &overflow->batch[(overflow->oldest + i) & (VOLT_OVERFLOW_CAP - 1)];
}
static void volt__overflow_drop_oldest(volt__overflow *overflow) {
    VOLT_ASSERT(overflow->n > 0);
    overflow->oldest++;
    overflow->n--;
}
// Adds the tasks of *c, which is not empty, as the newest batch. If all places are taken, the two
// oldest batches are joined.
static void volt__overflow_push(volt__overflow *overflow, const volt__chain *c) {
    VOLT_ASSERT(c->head && !c->tail->next);
    volt__lock(&overflow->lock);
    if (overflow->n == VOLT_OVERFLOW_CAP) {
        volt__chain both = *volt__overflow_batch(overflow, 0);
        volt__overflow_drop_oldest(overflow);
        volt__chain_append(&both, volt__overflow_batch(overflow, 0));
        *volt__overflow_batch(overflow, 0) = both;
    }
    *volt__overflow_batch(overflow, overflow->n++) = *c;
    volt__store_rel(&overflow->len, overflow->len + c->len); // [Q3] with is_empty
    volt__unlock(&overflow->lock);
}
// Moves at most `most` tasks from the front of the batch at `end` to the end of *c. Returns their
// number.
static uint32_t volt__overflow_pop(volt__overflow *overflow, volt__overflow_end end, uint32_t most,
                                   volt__chain *c) {
    uint32_t got = 0;
    if (volt__overflow_is_empty(overflow)) return 0;
    volt__lock(&overflow->lock);
    if (overflow->n > 0) {
        volt__chain *from = volt__overflow_batch(overflow,
                                                 end == VOLT__NEWEST ? overflow->n - 1 : 0);
        for (; got < most && from->head; got++) volt__chain_push(c, volt__chain_pop(from));
        if (!from->head && end == VOLT__OLDEST) volt__overflow_drop_oldest(overflow);
        else if (!from->head) overflow->n--;
        VOLT_ASSERT(got <= overflow->len && (overflow->len == got) == (overflow->n == 0));
        volt__store_rel(&overflow->len, overflow->len - got); // [Q3] with is_empty
    }
    volt__unlock(&overflow->lock);
    return got;
}
// Moves all tasks to the end of *c, the oldest batch first.
static void volt__overflow_pop_all(volt__overflow *overflow, volt__chain *c) {
    if (volt__overflow_is_empty(overflow)) return;
    volt__lock(&overflow->lock);
    for (; overflow->n > 0; volt__overflow_drop_oldest(overflow))
        volt__chain_append(c, volt__overflow_batch(overflow, 0));
    volt__store_rel(&overflow->len, 0); // [Q3] with is_empty
    volt__unlock(&overflow->lock);
}

// ---- ring
// A bounded FIFO of tasks. Its owner pushes and pops; any other worker may steal. Indices count up
// and wrap at 2^VOLT_RING_INDEX_BITS; index i stands for slot i mod VOLT_RING_CAP.
// The word head is index << VOLT_RING_DISTANCE_BITS | distance. `index` is the next task to claim,
// by the owner or by a thief. During a steal, `distance` is `index` minus the first slot that the
// thief copies, so it grows when the owner claims. Without a steal it is 0.
// Three kinds of slots are in use. Those of the first two kinds may come in either order:
//   - Slots that a thief has claimed and is copying.
//   - Slots from `next` to `claimed`: tasks that the owner has claimed. The owner claims several
//     tasks by one CAS of head, and then pops them one by one. The biased lock protects them.
//   - Slots from `index` to tail: tasks that are not claimed.
//
//   operation    by                               during a steal        takes effect at
//   push         owner                            allowed               the store of tail
//   pop          owner, under the biased lock     allowed               the CAS of head: claim
//   overflow     owner, under the biased lock     fails                 the CAS of head
//   pop_claimed  rescuer, under the biased lock   allowed               the store of next
//   steal        any other worker                 fails: one at a time  its first CAS of head: the
//                                                                       claim; the second ends it
// If the runtime has one worker, pop_solo pops its ring, without a lock or a CAS. If a thief stalls
// between its load of head and its CAS, the CAS fails unless head is the same word again. For that,
// 2^32 tasks (2^23 on 32 bits), or a multiple of that number, must have left the ring in between.
#define VOLT__NO_STEAL UINT32_MAX // the steal floor of a worker that refuses all steals
typedef struct volt__ring {
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) uintptr_t head; // any, rmw; solo: owner [Q2]
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) uint32_t tail;  // W owner, R any [Q1]
    uint32_t limit;       // owner: push does not check for room until tail reaches it
    uint32_t next;        // W under the biased lock, R any [Q5]: first of the claimed tasks
    uint32_t claimed;     // W owner, R any [Q6]: end of the claimed tasks, exclusive
    uint32_t claim_more;  // owner: a claim takes at most claim_more + 1 tasks
    uint32_t steal_floor; // W owner, R any (hint): length up to which thieves take nothing
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) volt__task *slot[VOLT_RING_CAP]; // W owner, R any [Q1] [Q2]
} volt__ring;

#define VOLT__RING_INDEX_MASK ((uint32_t)((UINT64_C(1) << VOLT_RING_INDEX_BITS) - 1))
#define VOLT__RING_DISTANCE_MASK ((((uintptr_t)1) << VOLT_RING_DISTANCE_BITS) - 1)
VOLT__SASSERT((VOLT_RING_CAP & (VOLT_RING_CAP - 1)) == 0, "power of two");
VOLT__SASSERT(VOLT_RING_CAP < (1u << VOLT_RING_DISTANCE_BITS), "a distance can be the whole ring");
VOLT__SASSERT(VOLT_RING_CAP * UINT64_C(2) < (UINT64_C(1) << VOLT_RING_INDEX_BITS),
              "full and empty must differ");
VOLT__SASSERT(VOLT_RING_INDEX_BITS + VOLT_RING_DISTANCE_BITS <= sizeof(uintptr_t) * 8, "one word");

static inline uint32_t volt__head_index(uintptr_t head) {
    return (uint32_t)(head >> VOLT_RING_DISTANCE_BITS) & VOLT__RING_INDEX_MASK;
}
static inline uint32_t volt__head_distance(uintptr_t head) {
    return (uint32_t)(head & VOLT__RING_DISTANCE_MASK);
}
static inline uintptr_t volt__head_make(uint32_t index, uint32_t distance) {
    return (uintptr_t)(index & VOLT__RING_INDEX_MASK) << VOLT_RING_DISTANCE_BITS | distance;
}
// Returns the number of slots from index `from` to index `to`, also if the indices have wrapped.
static inline uint32_t volt__ring_gap(uint32_t from, uint32_t to) {
    return (to - from) & VOLT__RING_INDEX_MASK;
}

// Returns 1 if there is a task that a thief may steal, else 0. A ring with a steal in progress
// counts as empty. Head is loaded before tail, here and in a steal: so tail is not older than head,
// and the gap is not negative.
static inline int volt__ring_is_stealable(const volt__ring *r) {
    uintptr_t head = volt__load_acq(&r->head); // [Q2] with pop and steal
    uint32_t tail = volt__load_acq(&r->tail);  // [Q1] with push
    uint32_t n = volt__ring_gap(volt__head_index(head), tail);
    // rlx: only compared
    return volt__head_distance(head) == 0 && n > volt__load_rlx(&r->steal_floor);
}
// Returns the number of tasks that are not claimed. Called by the owner. Thieves may reduce the
// number at any time.
static inline uint32_t volt__ring_len(const volt__ring *r) {
    uintptr_t head = volt__load_rlx(&r->head); // rlx: hint, only the length matters
    // rlx: only the owner writes it
    return volt__ring_gap(volt__head_index(head), volt__load_rlx(&r->tail));
}
// Returns the number of claimed tasks. Called by the owner, and by a rescuer as a hint. A rescuer
// may make it 0 at any time, unless the caller holds the biased lock.
static inline uint32_t volt__ring_n_claimed(const volt__ring *r) {
    uint32_t next = volt__load_acq(&r->next); // [Q5] with pop_claimed: slots were read
    // rlx: only the owner writes it; a rescuer reads it again, under the biased lock
    return volt__ring_gap(next, volt__load_rlx(&r->claimed));
}
// Returns the number of free slots. Called by the owner. Thieves and a rescuer may increase the
// number at any time. The slots in use begin at the first one that a thief copies or at the first
// claimed one, whichever is farther from tail.
static inline uint32_t volt__ring_room(const volt__ring *r) {
    uintptr_t head = volt__load_acq(&r->head); // [Q2] with steal: stolen slots were copied
    uint32_t tail = volt__load_rlx(&r->tail);  // rlx: only the owner writes it
    uint32_t n = volt__ring_gap(volt__head_index(head) - volt__head_distance(head), tail);
    uint32_t claimed = volt__load_rlx(&r->claimed); // rlx: only the owner writes it
    uint32_t n_claimed = volt__ring_n_claimed(r);
    if (n_claimed > 0) n = volt__max32(n, n_claimed + volt__ring_gap(claimed, tail));
    return VOLT_RING_CAP - n;
}
// Sets `limit` to the tail at which the ring will be full. Returns 1 if there is room, else 0.
static __attribute__((noinline)) int volt__ring_find_room(volt__ring *r, uint32_t tail) {
    r->limit = (tail + volt__ring_room(r)) & VOLT__RING_INDEX_MASK;
    return r->limit != tail;
}
// Called by the owner, without a lock. Returns 1, or 0 if the ring is full.
static inline int volt__ring_push(volt__ring *r, volt__task *t) {
    uint32_t tail = volt__load_rlx(&r->tail); // rlx: only the owner writes it
    if (VOLT__UNLIKELY(tail == r->limit) && !volt__ring_find_room(r, tail)) return 0;
    VOLT_ASSERT(volt__ring_gap(tail, r->limit) <= volt__ring_room(r));
    r->slot[tail & (VOLT_RING_CAP - 1)] = t;
    // [Q1] a thief that sees the new tail sees the slot
    volt__store_rel(&r->tail, (tail + 1) & VOLT__RING_INDEX_MASK);
    return 1;
}
// Claims half of the unclaimed tasks, rounded up, but at most claim_more + 1. The other half is
// left to thieves. Returns 1, or 0 if there is none. Called by volt__ring_pop while no task is
// claimed.
static int volt__ring_claim(volt__ring *r) {
    uintptr_t head = volt__load_acq(&r->head); // [Q2] with steal
    uint32_t tail = volt__load_rlx(&r->tail);  // rlx: only the owner writes it
    uint32_t index, n, distance;
    do {
        index = volt__head_index(head);
        distance = volt__head_distance(head);
        n = volt__ring_gap(index, tail);
        n = volt__min32(n - n / 2, r->claim_more + 1);
        if (n == 0) return 0;
        // [Q2] with steal
    } while (!volt__cas_acq_rel(&r->head, &head,
                                volt__head_make(index + n, distance ? distance + n : 0)));
    volt__store_rlx(&r->next, index); // rlx: the biased lock orders it
    volt__store_rel(&r->claimed, (index + n) & VOLT__RING_INDEX_MASK); // [Q6] with queued_at
    return 1;
}
// Pops the oldest task that no thief has claimed. Returns NULL if there is none. Called by the
// owner, under the biased lock.
static inline volt__task *volt__ring_pop(volt__ring *r) {
    uint32_t next = volt__load_rlx(&r->next); // rlx: under the biased lock
    if (next == volt__load_rlx(&r->claimed)) { // rlx: only the owner writes it
        if (!volt__ring_claim(r)) return NULL;
        next = volt__load_rlx(&r->next); // rlx: under the biased lock
    }
    // rlx: the biased lock orders it. The slot is read after this store: only the owner refills it
    volt__store_rlx(&r->next, (next + 1) & VOLT__RING_INDEX_MASK);
    return r->slot[next & (VOLT_RING_CAP - 1)];
}
// Moves the claimed tasks of a stuck worker to the end of *c. Called by a rescuer, under the biased
// lock, which it has revoked.
static void volt__ring_pop_claimed(volt__ring *r, volt__chain *c) {
    uint32_t end = volt__load_rlx(&r->claimed); // rlx: under the biased lock
    uint32_t i = volt__load_rlx(&r->next);      // rlx: under the biased lock
    for (; i != end; i = (i + 1) & VOLT__RING_INDEX_MASK)
        volt__chain_push(c, r->slot[i & (VOLT_RING_CAP - 1)]);
    volt__store_rel(&r->next, end); // [Q5] with n_claimed: the slots have been read
}
// volt__ring_pop for the only worker of a runtime. There are no thieves, so it claims nothing.
static inline volt__task *volt__ring_pop_solo(volt__ring *r) {
    uintptr_t head = volt__load_rlx(&r->head); // rlx: only the owner writes it
    uint32_t index = volt__head_index(head);
    VOLT_ASSERT(volt__head_distance(head) == 0);
    if (index == volt__load_rlx(&r->tail)) return NULL;       // rlx: only the owner writes it
    volt__store_rlx(&r->head, volt__head_make(index + 1, 0)); // rlx: others read it as a hint
    return r->slot[index & (VOLT_RING_CAP - 1)];
}
// Moves half of the unclaimed tasks of `from`, rounded up, to `to`, which the caller owns: at most
// half a ring, and no more than fit. Returns their number. It is 0 if `from` is empty, `to` is
// full, or another steal from `from` is in progress. Ignores the steal floor, which a thief checks
// before and a rescuer does not.
static uint32_t volt__ring_steal(volt__ring *from, volt__ring *to) {
    uint32_t room = volt__min32(volt__ring_room(to), VOLT_RING_CAP / 2), index, n;
    VOLT_ASSERT(from != to);
    uintptr_t head = volt__load_acq(&from->head); // [Q2] with pop and other thieves
    do {
        if (volt__head_distance(head) != 0) return 0;
        index = volt__head_index(head);
        n = volt__ring_gap(index, volt__load_acq(&from->tail)); // [Q1] with push
        n = volt__min32(n - n / 2, room);
        if (n == 0) return 0;
    } while (!volt__cas_acq_rel(&from->head, &head, volt__head_make(index + n, n))); // [Q2] claim
    uint32_t tail = volt__load_rlx(&to->tail); // rlx: only the owner writes it
    for (uint32_t i = 0; i < n; i++)
        to->slot[(tail + i) & (VOLT_RING_CAP - 1)] = from->slot[(index + i) & (VOLT_RING_CAP - 1)];
    head = volt__head_make(index + n, n);
    VOLT_ASSERT(n <= VOLT_RING_CAP / 2 && n <= volt__ring_room(to));
    // The loop is needed since the owner may claim tasks during the copy.
    // [Q2] the slots have been copied: their owner may reuse them
    while (!volt__cas_acq_rel(&from->head, &head, volt__head_make(volt__head_index(head), 0))) {}
    tail = (tail + n) & VOLT__RING_INDEX_MASK;
    volt__store_rel(&to->tail, tail); // [Q1] with the next thief
    to->limit = tail; // the next push checks for room
    return n;
}
// Makes room in a full ring: keeps the older half of the tasks, which begins with the claimed ones,
// and moves the newer half to the end of *c. The CAS claims every task, which empties the ring.
// Then tail advances by half a ring. The slots that it passes are those of the older half already,
// since indices that differ by VOLT_RING_CAP share a slot: so that half is in the ring again, and
// no task of it is claimed. With 4 slots, head 8 and tail 12 become head 12 and tail 14: slots 0
// and 1, which held the tasks 8 and 9, hold them as 12 and 13. Returns 1 if it has made room.
// Returns 0 if a thief has taken tasks or is taking them now: there is room, or will be once the
// steal has ended and the claimed tasks are popped. Called by the owner, under the biased lock.
static int volt__ring_overflow(volt__ring *r, volt__chain *c) {
    uint32_t tail = volt__load_rlx(&r->tail); // rlx: only the owner writes it
    uint32_t n = volt__ring_n_claimed(r);
    uintptr_t full = volt__head_make(tail - VOLT_RING_CAP + n, 0);
    // [Q2] the claim excludes thieves
    if (!volt__cas_acq_rel(&r->head, &full, volt__head_make(tail, 0))) return 0;
    VOLT_ASSERT(volt__ring_len(r) == 0);
    volt__store_rlx(&r->next, volt__load_rlx(&r->claimed)); // rlx: under the biased lock
    for (uint32_t i = VOLT_RING_CAP / 2; i < VOLT_RING_CAP; i++)
        volt__chain_push(c, r->slot[(tail + i) & (VOLT_RING_CAP - 1)]);
    tail = (tail + VOLT_RING_CAP / 2) & VOLT__RING_INDEX_MASK;
    volt__store_rel(&r->tail, tail); // [Q1] with steal
    r->limit = tail;
    return 1;
}

//==================================================================================================
// >>task  the task word: one transition function per event
//==================================================================================================
// The word of a task holds its state in the low bits and the number of its references above them.
// The worker that polls a task is its runner. The runner begins, suspends, yields and finishes the
// task. Any thread may wake or cancel a task that it can reach, by a reference or by a linked node.
// A word that was loaded may be stale at once, so each transition is one RMW and decides by the
// word that it found; only private tasks, below, need none.
//   bit        set by                      cleared by              meaning
//   RUNNING    begin                       suspend, yield, finish  the runner polls it
//   NOTIFIED   spawn, wake, cancel, yield  begin                   queued, or about to be queued
//   COMPLETE   finish                      -                       the function has returned
//   CANCELLED  cancel                      -                       the next poll starts cancelled
//
// A task with none of RUNNING, NOTIFIED and COMPLETE is idle. A cancel is a wake that also sets
// CANCELLED. (NOTIFIED) means that the bit may be set or not.
//   from                  event    to                       by          and then
//   idle                  wake     NOTIFIED                 any thread  this thread enqueues it
//   NOTIFIED              wake     NOTIFIED                 any thread  nothing
//   NOTIFIED              begin    RUNNING                  runner      polls it
//   RUNNING (NOTIFIED)    wake     RUNNING NOTIFIED         any thread  its runner will enqueue it
//   RUNNING               suspend  idle                     runner      nothing: *t may be freed
//   RUNNING NOTIFIED      suspend  NOTIFIED                 runner      enqueues it
//   RUNNING (NOTIFIED)    yield    NOTIFIED                 runner      enqueues it
//   RUNNING (NOTIFIED)    finish   COMPLETE (NOTIFIED)      runner      frees it if unreferenced
//   COMPLETE (NOTIFIED)   wake     COMPLETE NOTIFIED        any thread  nothing
//
// A task is private while only its runner can reach its word. Such a task has no armed node (one
// that is not IDLE). It has never had a handle, belonged to a group, owned a group, made a waker,
// joined a task or blocked in place. The runner updates a private word by plain loads and stores:
// the queue that the task came through has published the last change of it. Only a poll of the task
// itself can end its privacy, so the runner knows whether a task is private.
// The exception is the sweep of a shutdown, which reaches all tasks through the slabs. It runs
// after all workers have acknowledged the shutdown, and from its acknowledgement on a worker treats
// no word as private. All other walkers only read.
//
//   reference               count   released by
//   life of the task        1       finish, volt_task_destroy; a refused spawn
//   handle                  1       join, detach; a refused spawn
//   waker                   1 each  volt_waker_release
//   waiter in a join word   1       the thread that takes the waiter out of the word
//   result kept by a group  1       volt_group_next, or the close of the group; a refused spawn
//   sweep of a shutdown     1       the sweep, which retains only a task that has references
// Queues and linked nodes need no reference. A queued task has not finished. And before a task with
// a linked node finishes, its runner takes the lock of the node's list, under which the node is
// fired.
#define VOLT__RUNNING ((uintptr_t)1)
#define VOLT__NOTIFIED ((uintptr_t)2)
#define VOLT__COMPLETE ((uintptr_t)4)
#define VOLT__CANCELLED ((uintptr_t)8)
#define VOLT__REF ((uintptr_t)64) // one reference; the two bits below it are unused
#ifndef VOLT_REF_BITS
#  define VOLT_REF_BITS (sizeof(uintptr_t) * 8 - 6)
#endif
// Half of the range of the count, so that a leak of references stops the program before a wrap.
#define VOLT__REF_MAX ((VOLT__REF << (VOLT_REF_BITS - 1)) - 1)
// Bits of volt__task.flags. Set before the task is first enqueued, then only by its runner.
enum {
    VOLT__HAS_GROUP_LINK = 1, // is a member of a group: its slot ends with a volt__group_link
    VOLT__EXTERNAL = 2,       // the state belongs to the caller; the slot holds a pointer to it
    VOLT__HAS_HANDLE = 4,     // a handle was made: the task's end is published in its join word
    VOLT__IS_ROOT = 8,        // its end starts the runtime's shutdown
    VOLT__GAVE_WAKER = 16,    // a waker was made: any thread may wake the task at any time
    VOLT__WAS_LOGGED = 32,    // was logged because it ignores its cancellation
    VOLT__HAD_GROUP = 64,     // has owned a group, which may be open when the function returns
    VOLT__IS_SHARED = 128     // has lent a reference to a join word, or a sweep may reach it
};

// Returns 1 if a thread that has set NOTIFIED in the word `old` has to enqueue the task, else 0.
static inline int volt__word_must_enqueue(uintptr_t old) {
    return (old & (VOLT__RUNNING | VOLT__NOTIFIED | VOLT__COMPLETE)) == 0;
}
// Returns 1 if the caller has to enqueue the task, else 0. The writes that the caller made before
// are visible in the task's next poll, even if the task is notified already: so this is always an
// RMW.
static inline int volt__task_wake(volt__task *t) {
    uintptr_t old = volt__or_acq_rel(&t->word, VOLT__NOTIFIED); // [T1] with begin
    VOLT_ASSERT(old >= VOLT__REF);
    return volt__word_must_enqueue(old);
}
// A wake that also cancels. Returns the same.
static inline int volt__task_cancel(volt__task *t) {
    uintptr_t bits = VOLT__NOTIFIED | VOLT__CANCELLED;
    uintptr_t old = volt__or_acq_rel(&t->word, bits); // [T1] with begin
    VOLT_ASSERT(old >= VOLT__REF);
    return volt__word_must_enqueue(old);
}
// Reads shield_depth, flags and n_armed by one load. Returns 0 if all of them are 0.
static inline uint32_t volt__task_traits(const volt__task *t) {
    uint32_t traits;
    VOLT__SASSERT(offsetof(volt__task, n_armed) == offsetof(volt__task, shield_depth) + 2,
                  "task layout");
    memcpy(&traits, &t->shield_depth, sizeof traits);
    return traits;
}
#define VOLT__QUEUED (VOLT__REF | VOLT__NOTIFIED) // the word of a private task in a queue
// Begin, yield and finish for private tasks. Each returns 1 if done. Each returns 0 if it has done
// nothing, because the task is not private or has a shield; begin also if is_closing, that is, if
// the worker has acknowledged a shutdown. A task that begins here is not cancelled, and its state
// lies in its slot. A task that finishes here has no references left: the caller frees it. A
// suspension is always an RMW, since an armed node may be fired at any time.
static inline int volt__task_begin_private(volt__task *t, uint32_t is_closing) {
    if (VOLT__UNLIKELY((volt__task_traits(t) | is_closing) != 0)) return 0;
    VOLT_ASSERT(volt__load_rlx(&t->word) == VOLT__QUEUED); // rlx: private
    volt__store_rlx(&t->word, VOLT__REF | VOLT__RUNNING);  // rlx: private
    return 1;
}
// Returns 1 if a private word is as begin left it, except that NOTIFIED may be set: by the runner
// itself, or by an event that fired a node of the task in this poll, before the runner unbound it.
static inline int volt__task_is_running(const volt__task *t) {
    // rlx: private
    return (volt__load_rlx(&t->word) | VOLT__NOTIFIED) == (VOLT__QUEUED | VOLT__RUNNING);
}
// shield_depth: cx->shield_depth_ at the end of the poll.
static inline int volt__task_yield_private(volt__task *t, uint32_t shield_depth) {
    if (VOLT__UNLIKELY((volt__task_traits(t) | shield_depth) != 0)) return 0;
    VOLT_ASSERT(volt__task_is_running(t));
    volt__store_rlx(&t->word, VOLT__QUEUED); // rlx: private
    return 1;
}
static inline int volt__task_finish_private(volt__task *t) {
    if (VOLT__UNLIKELY(volt__task_traits(t) != 0)) return 0;
    VOLT_ASSERT(volt__task_is_running(t));
    volt__store_rlx(&t->word, VOLT__COMPLETE); // rlx: private
    return 1;
}
// Returns 1 if this poll starts cancelled, else 0. NOTIFIED is set and RUNNING is not, so the XOR
// swaps the two.
static inline int volt__task_begin(volt__task *t) {
    // [T1] with wake and suspend
    uintptr_t old = volt__xor_acq_rel(&t->word, VOLT__RUNNING | VOLT__NOTIFIED);
    VOLT_ASSERT((old & (VOLT__RUNNING | VOLT__NOTIFIED | VOLT__COMPLETE)) == VOLT__NOTIFIED);
    return (old & VOLT__CANCELLED) != 0;
}
// Returns 1 if the task was notified during the poll: the runner enqueues it. Returns 0 if not:
// *t may be freed from here on.
static inline int volt__task_suspend(volt__task *t) {
    uintptr_t old = volt__and_acq_rel(&t->word, ~VOLT__RUNNING); // [T1] with the next begin
    VOLT_ASSERT(old & VOLT__RUNNING);
    return (old & VOLT__NOTIFIED) != 0;
}
// Suspends and wakes the task in one step. The runner enqueues it. NOTIFIED may be set already, so
// this is a CAS and not an XOR.
static inline void volt__task_yield(volt__task *t) {
    uintptr_t old = volt__load_rlx(&t->word); // rlx: hint, re-checked by the CAS
    VOLT_ASSERT((old & VOLT__RUNNING) && !(old & VOLT__COMPLETE));
    // [T1] with begin
    while (!volt__cas_acq_rel(&t->word, &old, (old & ~VOLT__RUNNING) | VOLT__NOTIFIED)) {}
}
// Sets COMPLETE, clears RUNNING and releases the reference of the task's life, by one addition that
// wraps. Returns 1 if the reference was the last one: the caller frees the slot. Else returns 0: *t
// may be freed from here on.
static inline int volt__task_finish(volt__task *t) {
    uintptr_t step = VOLT__COMPLETE - VOLT__RUNNING - VOLT__REF;
    uintptr_t old = volt__add_acq_rel(&t->word, step); // [T2] with release
    VOLT_ASSERT((old & VOLT__RUNNING) && !(old & VOLT__COMPLETE) && old >= VOLT__REF);
    return old < 2 * VOLT__REF;
}
static inline void volt__task_retain(volt__task *t) {
    // rlx: a reference keeps the task: one of the caller, or for the runner that of its life
    uintptr_t old = volt__add_rlx(&t->word, VOLT__REF);
    VOLT__REQUIRE(old >= VOLT__REF && old < VOLT__REF_MAX,
                  "a task has too many references, or was released before");
}
// Returns 1 if the reference was the last one: the caller frees the slot. Else returns 0, and *t
// may be freed from here on.
static inline int volt__task_release(volt__task *t) {
    uintptr_t old = volt__sub_acq_rel(&t->word, VOLT__REF); // [T2] all uses before the free
    VOLT_ASSERT(old >= VOLT__REF);
    return old < 2 * VOLT__REF;
}
// Retains the task of a slot. Returns 1, or 0 if the slot is free, that is, if its word has no
// references. Called by the sweep of a shutdown, after all workers have acknowledged the shutdown.
static int volt__task_try_retain(volt__task *t) {
    uintptr_t old = volt__load_acq(&t->word); // [M2] with task init
    while (old >= VOLT__REF)
        if (volt__cas_acq_rel(&t->word, &old, old + VOLT__REF)) return 1; // [M2] with task init
    return 0;
}

// Calls fn for each slot that was ever used, under slabs.lock, which keeps the slabs alive. fn must
// not create or destroy slabs, which takes that lock, or call into the application. A slot may be
// free (no references in its word), and a live task may end during the call, so fn must not write
// to a task that it has not retained. Called by any thread.
static void volt__slabs_walk(volt__slabs *all, void (*fn)(void *arg, volt__task *t), void *arg) {
    volt__lock(&all->lock);
    for (volt__slab *s = all->first; s; s = s->all_next) {
        uint32_t n = volt__load_acq(&s->carved); // [M2] with carve
        for (uint32_t i = 0; i < n; i++) fn(arg, volt__slab_slot(s, i));
    }
    volt__unlock(&all->lock);
}

//==================================================================================================
// >>node  nodes of waits: their states change under the lock of source_
//==================================================================================================
// A node is one wait: it links a task into the list of the object that the task waits for. Blocked
// threads wait by nodes as well: functions for them, and two more states, are in >>leaf.
//   - While a node is linked, state_ changes only under the lock of its source, the object that
//     source_ points to.
//   - The runner may read state_ without the lock, as a hint. A task whose node is still LINKED
//     keeps waiting. Once the node is fired, the runner takes the lock before it uses or frees the
//     node: the thread that fired it may still hold the lock.
//   - The low four bits of state_ are the state. In a wheel, the bits above are the node's level.
//   - A node that is not IDLE is armed. n_armed of the task counts its armed nodes; a task that has
//     any cannot finish.
//   - The node of a join is on no list and is never fired: its source_ is the child task, whose
//     join word holds the waiting task.
// The runner of the task binds a node, which arms it, before the node is linked, and unbinds it
// once it is off its list. Any thread may fire a node, under the lock of its source.
//   state   set by  meaning
//   IDLE    unbind  no wait
//   LINKED  bind    waiting
//   FIRED   fire    the event has come, or the waiter was granted what it waits for
//   CLOSED  fire    the source was closed
enum { VOLT__IDLE, VOLT__LINKED, VOLT__FIRED, VOLT__CLOSED };

// Returns the task to wake. waiter_ points to it, or if the node is that of a frame with open
// scopes, to the innermost scope, which stores the task. The low bits of waiter_ tell which.
static inline volt__task *volt__node_task(const volt__node *node) {
    uintptr_t waiter = (uintptr_t)node->waiter_;
    if (VOLT__UNLIKELY(waiter & VOLT__WAITER_IS_SCOPE))
        return ((volt__scope *)(waiter - VOLT__WAITER_IS_SCOPE))->task_;
    return (volt__task *)node->waiter_;
}
static inline uint8_t volt__node_state(const volt__node *node) {
    return volt__load_rlx(&node->state_) & 15; // rlx: hint, or under the lock of source_
}
static inline void volt__node_set(volt__node *node, uint8_t state) {
    volt__store_rlx(&node->state_, state); // rlx: under lock, or not linked
}
// Arms the node for a wait of t, with the source `on`. Called by the runner, before it links the
// node.
static inline void volt__node_bind(volt__node *node, volt__task *t, void *on) {
    VOLT_ASSERT(volt__node_state(node) == VOLT__IDLE);
    if (VOLT__UNLIKELY(t->n_armed == UINT16_MAX)) // rlx: only the runner writes wait_site
        volt__misuse(volt__load_rlx(&t->wait_site), "more than 65535 waits at once in one task");
    if (!((uintptr_t)node->waiter_ & VOLT__WAITER_IS_SCOPE)) node->waiter_ = t;
    node->source_ = on;
    t->n_armed++;
    volt__node_set(node, VOLT__LINKED);
}
// Ends a wait. Called by the runner, after the node has left its list and the thread that fired it
// has released the lock.
static inline void volt__node_unbind(volt__node *node, volt__task *t) {
    VOLT_ASSERT(t->n_armed > 0);
    t->n_armed--;
    volt__node_set(node, VOLT__IDLE);
}
// Fires a node that was just unlinked: sets its state, wakes its task, and adds the task to *c if
// it must be enqueued. Called under the lock of source_. LAST TOUCH: once the lock is released,
// node and task may be gone, unless the task is in *c.
static inline void volt__node_fire(volt__node *node, uint8_t state, volt__chain *c) {
    volt__task *t = volt__node_task(node);
    VOLT_ASSERT(volt__node_state(node) == VOLT__LINKED && t != NULL);
    volt__node_set(node, state);
    if (volt__task_wake(t)) volt__chain_push(c, t);
}
// Unlinks and fires all nodes of a list. Called under the lock of the list.
static void volt__list_fire_all(volt__node **head, uint8_t state, volt__chain *c) {
    while (*head) {
        volt__node *node = *head;
        volt__list_remove(head, node);
        volt__node_fire(node, state, c);
    }
}

//==================================================================================================
// >>timers  hierarchical wheel, one per worker
//==================================================================================================
// The timers of a worker, in a hierarchical wheel: VOLT_WHEEL_LEVELS levels of 2^BITS slots each,
// where BITS is VOLT_WHEEL_BITS. A slot is a list of nodes. Time is counted in ticks of
// VOLT_TICK_NS since the runtime was created. `elapsed` is the tick that the wheel has advanced to.
// All fields are under `lock`.
//   - A timer at tick T lies in level L = D / BITS, where D is the highest bit in which T and
//     `elapsed` differ, or in the top level if L is beyond that, in slot (T >> L * BITS) mod
//     2^BITS. So every timer of a level is due before every timer of the levels above it, and the
//     first occupied slot of the lowest occupied level is next.
//   - When `elapsed` reaches a slot of an upper level, the nodes of the slot are moved to lower
//     levels or, if they are due, fired.
//   - The top level is a ring. A deadline beyond its span waits in the furthest slot, and is
//     inserted again when `elapsed` reaches that slot.
//
//   operation  by
//   arm        the owner of the wheel, inside a poll
//   disarm     any worker, in a poll of the node's task; required for each node that was armed
//   fire       the owner, or a rescuer if the owner is stuck (>>watchdog); at most VOLT_FIRE_MAX
//              nodes are handled per hold of the lock
//   expiry     the owner
#define VOLT__WHEEL_SLOTS (1u << VOLT_WHEEL_BITS)
#define VOLT__WHEEL_MASK (VOLT__WHEEL_SLOTS - 1)
VOLT__SASSERT(VOLT_WHEEL_BITS >= 1 && VOLT_WHEEL_BITS <= 6, "occupancy is one 64-bit word");
typedef struct volt__wheel {
    uint32_t lock;
    uint64_t elapsed;                     // ticks before it are done; nodes due at it may be left
    uint64_t occupied[VOLT_WHEEL_LEVELS]; // per level: one bit for each slot that is not empty
    volt__node *slot[VOLT_WHEEL_LEVELS][1u << VOLT_WHEEL_BITS];
} volt__wheel;

// Returns the slot of a tick in a level.
static inline uint32_t volt__wheel_pos(uint64_t tick, uint32_t level) {
    return (uint32_t)(tick >> (level * VOLT_WHEEL_BITS)) & VOLT__WHEEL_MASK;
}
static inline int volt__wheel_is_empty(const volt__wheel *w) {
    uint64_t any = 0;
    for (uint32_t l = 0; l < VOLT_WHEEL_LEVELS; l++) any |= w->occupied[l];
    return any == 0;
}
// Returns the slot, that is, the head of the list, of a linked node. In the top level it may be a
// wrong slot if the node is not the first of its list. The removal of such a node changes no head
// and empties no slot, so a wrong slot does no harm there.
static inline volt__node **volt__wheel_head(volt__wheel *w, const volt__node *node) {
    uint32_t level = volt__load_rlx(&node->state_) >> 4; // rlx: under lock
    uint64_t tick = node->key_.tick_;
    // a deadline that was beyond the span does not lie in the slot of its tick
    if (level == VOLT_WHEEL_LEVELS - 1)
        for (uint32_t pos = 0; pos < VOLT__WHEEL_SLOTS; pos++)
            if (w->slot[level][pos] == node) return &w->slot[level][pos];
    return &w->slot[level][volt__wheel_pos(tick, level)];
}
// Links a node by its tick, key_. If `elapsed` has reached that tick already, the next one replaces
// it. Called under lock.
static void volt__wheel_insert(volt__wheel *w, volt__node *node) {
    uint32_t top = VOLT_WHEEL_LEVELS - 1, shift = top * VOLT_WHEEL_BITS;
    if (node->key_.tick_ <= w->elapsed) node->key_.tick_ = w->elapsed + 1;
    uint64_t tick = node->key_.tick_;
    // the furthest slot: one slot short of a full turn of the top level
    uint64_t furthest = ((w->elapsed >> shift) + VOLT__WHEEL_MASK) << shift;
    if (tick > furthest) tick = furthest;
    uint32_t level = (uint32_t)volt__highest_bit((w->elapsed ^ tick) | 1) / VOLT_WHEEL_BITS;
    if (level > top) level = top;
    uint32_t pos = volt__wheel_pos(tick, level);
    VOLT_ASSERT(tick > w->elapsed && (level == 0 || pos != volt__wheel_pos(w->elapsed, level)));
    volt__node_set(node, (uint8_t)(VOLT__LINKED | level << 4));
    volt__list_push(&w->slot[level][pos], node);
    w->occupied[level] |= UINT64_C(1) << pos;
}
// Unlinks a node. Called under lock.
static void volt__wheel_remove(volt__wheel *w, volt__node *node) {
    volt__node **head = volt__wheel_head(w, node);
    VOLT_ASSERT(volt__node_state(node) == VOLT__LINKED && node->source_ == w);
    volt__list_remove(head, node);
    if (*head) return;
    uint32_t at = (uint32_t)(head - &w->slot[0][0]);
    w->occupied[at / VOLT__WHEEL_SLOTS] &= ~(UINT64_C(1) << at % VOLT__WHEEL_SLOTS);
}
// Finds the slot to be handled next: its level, and the tick *when at which it begins, or `elapsed`
// if that has reached it. Returns 1, or 0 if the wheel is empty. Called under lock.
static int volt__wheel_next(const volt__wheel *w, uint32_t *level, uint64_t *when) {
    if (volt__wheel_is_empty(w)) return 0; // fast path: an event poll of a worker without timers
    // slots that `elapsed` has reached come first: nodes there have not been moved down yet
    for (uint32_t l = VOLT_WHEEL_LEVELS - 1; l > 0; l--) {
        if (!(w->occupied[l] >> volt__wheel_pos(w->elapsed, l) & 1)) continue;
        *level = l;
        *when = w->elapsed;
        return 1;
    }
    for (uint32_t l = 0; l < VOLT_WHEEL_LEVELS; l++) {
        uint32_t pos = volt__wheel_pos(w->elapsed, l), shift = l * VOLT_WHEEL_BITS;
        uint64_t ahead = w->occupied[l] >> pos; // the slots from pos on; if none, the ring wraps
        if (!w->occupied[l]) continue;
        int d = ahead ? __builtin_ctzll(ahead)
                      : __builtin_ctzll(w->occupied[l]) + (int)(VOLT__WHEEL_SLOTS - pos);
        *level = l;
        *when = ((w->elapsed >> shift) + (uint64_t)d) << shift;
        VOLT_ASSERT(*when >= w->elapsed);
        return 1;
    }
    return 0;
}
// Advances `elapsed` towards tick `now`, and handles at most VOLT_FIRE_MAX nodes: fires each one
// that is due, adds the tasks to be enqueued to *c, and moves the others down. Returns 0 if `now`
// is reached, or 1 if nodes are left to handle. Called under lock.
static int volt__wheel_advance(volt__wheel *w, uint64_t now, volt__chain *c, uint64_t *n_fired) {
    uint32_t level, handled = 0;
    uint64_t when;
    while (volt__wheel_next(w, &level, &when) && when <= now) {
        VOLT_ASSERT(when >= w->elapsed);
        w->elapsed = when;
        volt__node **head = &w->slot[level][volt__wheel_pos(when, level)];
        for (; *head; handled++) {
            if (handled == VOLT_FIRE_MAX) return 1;
            volt__node *node = *head;
            volt__wheel_remove(w, node);
            if (node->key_.tick_ <= when) {
                ++*n_fired;
                volt__node_fire(node, VOLT__FIRED, c);
            } else {
                volt__wheel_insert(w, node);
            }
        }
    }
    if (now > w->elapsed) w->elapsed = now;
    return 0;
}
// Fires all timers due at tick `now` or before, and adds the tasks to be enqueued to *c. Returns
// the number of timers fired. Called by the owner.
static uint64_t volt__wheel_fire(volt__wheel *w, uint64_t now, volt__chain *c) {
    uint64_t n_fired = 0;
    int more;
    do {
        volt__lock(&w->lock);
        more = volt__wheel_advance(w, now, c, &n_fired);
        volt__unlock(&w->lock);
    } while (more);
    return n_fired;
}
// The same, called by a rescuer: stops when another thread holds the lock.
static uint64_t volt__wheel_try_fire(volt__wheel *w, uint64_t now, volt__chain *c) {
    uint64_t n_fired = 0;
    int more = 1;
    while (more && volt__try_lock(&w->lock)) {
        more = volt__wheel_advance(w, now, c, &n_fired);
        volt__unlock(&w->lock);
    }
    return n_fired;
}
// Returns the tick at which the wheel must next be advanced, or UINT64_MAX if it is empty. No timer
// is due before that tick. A slot of an upper level has to be handled when it begins, mostly before
// any of its timers is due. If the slot has at most 32 nodes, the first deadline among them is
// returned instead, so that one long timer does not wake its worker once per level. Called by the
// owner.
static uint64_t volt__wheel_expiry(volt__wheel *w) {
    uint32_t level;
    uint64_t when = UINT64_MAX, due = UINT64_MAX;
    volt__lock(&w->lock);
    if (volt__wheel_next(w, &level, &when) && level > 0 && when > w->elapsed) {
        uint64_t end = when + (UINT64_C(1) << (level * VOLT_WHEEL_BITS));
        volt__node *first = w->slot[level][volt__wheel_pos(when, level)], *node = first;
        for (int i = 0; i < 32; i++) {
            if (node->key_.tick_ < due) due = node->key_.tick_;
            node = node->next_;
            if (node == first) { // due >= end: all deadlines are beyond the span of the wheel
                if (due > when && due < end) when = due;
                break;
            }
        }
    }
    volt__unlock(&w->lock);
    return when;
}
// Called inside a poll of t, with the wheel of the worker that runs the poll.
static void volt__timer_arm(volt__wheel *w, volt__node *node, volt__task *t, uint64_t tick) {
    node->key_.tick_ = tick;
    volt__node_bind(node, t, w);
    volt__lock(&w->lock);
    volt__wheel_insert(w, node);
    volt__unlock(&w->lock);
}
// Called by any worker, in a poll of t, the node's task. Takes the lock even if the node has been
// fired: the thread that fired it may still hold the lock and use the node.
static void volt__timer_disarm(volt__node *node, volt__task *t) {
    volt__wheel *w = (volt__wheel *)node->source_;
    if (volt__node_state(node) == VOLT__IDLE) return;
    VOLT_ASSERT(w != NULL && t->n_armed > 0);
    volt__lock(&w->lock);
    if (volt__node_state(node) == VOLT__LINKED) volt__wheel_remove(w, node);
    volt__unlock(&w->lock);
    volt__node_unbind(node, t);
}

//==================================================================================================
// >>fds  the table of descriptors
//==================================================================================================
// The table has one entry per descriptor number. The entry records how the descriptor is registered
// in epoll, the readiness that epoll has reported, and the nodes that wait for it. A descriptor is
// own if volt reads or writes it, foreign if another library does and volt only waits for it.
//   mode     registration in epoll                                        readiness
//   NONE     none                                                         unknown
//   EDGE     own: edge-triggered, both directions, until it is retired    kept in `ready`
//   ONESHOT  foreign: one-shot, re-armed at every wait, so that the       not kept
//            library may close and reopen the descriptor unnoticed
//   ALWAYS   none: epoll refuses the file (EPERM)                         always ready
//
// Entries are freed with the runtime only, so a stale event finds an entry of another generation,
// not freed memory. To retire an entry is to end one use of it: all its waiters are fired, and its
// next generation begins. While a pin is held, volt_close does not close the number, so the kernel
// does not reuse it. An entry changes under its lock, except for `pins`, `backoff_ms`, and the
// flags of a fresh number. Any thread may look up and pin an entry. Other functions on an entry
// take its lock, unless they are called under it. Accesses of a row and a column are ordered by:
//              operation  event  close  release  accesses by
//   operation  lock                              a task in a poll; read, write, accept hold a pin
//   event      lock       lock                   a poller: the reactor's worker, or its rescuer
//   close      pin        lock   CAS             any thread; the CAS winner performs close(2)
//   release    lock       lock   lock   lock     volt_fd_release, by a task in a poll; ignores pins
#ifndef VOLT_NO_IO
enum { VOLT__RD = 1, VOLT__WR = 2 }; // directions
enum { VOLT__MODE_NONE, VOLT__MODE_EDGE, VOLT__MODE_ONESHOT, VOLT__MODE_ALWAYS };
// The flags of an entry: how calls on the descriptor are kept from blocking.
//   PROBED    The kind of the descriptor is known.
//   SOCKET    Each read and write passes MSG_DONTWAIT.
//   STREAM    A short read means that the socket is empty, a short write that it is full. TCP only:
//             a unix socket also stops at passed descriptors, other protocols at records.
//   NONBLOCK  No call blocks, with or without MSG_DONTWAIT: accept, and the calls of volt_io.
//   REOPENED  Calls use an open file description of volt's own, which no other process shares.
//   TOGGLED   The description is non-blocking only during each of volt's calls.
//   DISK      Calls never give EAGAIN, with or without O_NONBLOCK.
enum {
    VOLT__FD_PROBED = 1,
    VOLT__FD_SOCKET = 2,
    VOLT__FD_STREAM = 4,
    VOLT__FD_NONBLOCK = 8,
    VOLT__FD_REOPENED = 16,
    VOLT__FD_TOGGLED = 32,
    VOLT__FD_DISK = 64
};
#define VOLT__FD_IS_CLOSING 1u // a bit of `pins`
#define VOLT__FD_PIN 2u        // the unit in which `pins` counts

typedef struct volt__fd {
    VOLT__ALIGN(VOLT__CACHE_LINE) uint32_t lock;
    uint32_t pins;       // any, rmw [F2]: VOLT__FD_PIN for each pin, + IS_CLOSING
    uint32_t seq;        // W under lock, R any [F3]: number of events and retirements
    uint32_t gen;        // W under lock, R any (relaxed): number of retirements
    uint8_t ready;       // W under lock, R any (hint): directions; a stale bit costs one attempt
    uint8_t sticky;      // under lock: RDHUP, PRI, HUP or ERR was reported; no edge will repeat it
    uint8_t mode, flags; // W under lock, R any (hint); flags of a fresh number: W without the lock
    uint16_t reactor;    // under lock: index of its reactor, if mode is EDGE or ONESHOT
    uint16_t backoff_ms; // any (relaxed): ms of the last back-off of accept; 0: none
    int reopened_fd;     // under lock: if REOPENED, volt's own descriptor; else 0
    // under lock: the mapped_len bytes before mapped_end were accessible at the last check
    uint32_t mapped_len;
    const char *mapped_end;
    volt__node *rd, *wr; // under lock: waiters
    volt__node *backoff; // under lock: an accept that waits on a timer; rd waits behind it
} volt__fd;
VOLT__SASSERT(sizeof(volt__fd) == VOLT__CACHE_LINE, "one line per descriptor");

// A tree of three levels: ROOT directories of DIR pages of PAGE entries.
#define VOLT__FD_PAGE 64u
#define VOLT__FD_DIR 64u
#define VOLT__FD_ROOT 1024u
#define VOLT__FD_MAX (VOLT__FD_PAGE * VOLT__FD_DIR * VOLT__FD_ROOT)
typedef struct volt__fd_dir {
    volt__fd *page[VOLT__FD_DIR]; // any, set once [F1]
} volt__fd_dir;
typedef struct volt__fds {
    volt__fd_dir *dir[VOLT__FD_ROOT]; // any, set once [F1]
    volt_allocator alloc;
    uint32_t n_reactors;  // once: those of the first n_reactors workers serve descriptors
    int *epfd;            // by worker; set before this worker, and any of a higher index, runs
    uint32_t toggle_lock; // serializes the calls on TOGGLED descriptors
} volt__fds;

// Allocates zeroed memory and publishes it in *slot; a thread that loses this race returns the
// winner's. No lock is held, because the allocator is user code. Returns NULL if out of memory.
static __attribute__((noinline)) void *volt__fds_make_page(volt__fds *f, void **slot, size_t size) {
    void *current = NULL;
    void *fresh = f->alloc.alloc(f->alloc.user, size, VOLT__CACHE_LINE);
    if (!fresh) return NULL;
    memset(fresh, 0, size);
    if (volt__cas_acq_rel(slot, &current, fresh)) return fresh; // [F1] with page, lookup
    f->alloc.free(f->alloc.user, fresh, size);
    return current;
}
static inline void *volt__fds_page(volt__fds *f, void **slot, size_t size) {
    void *current = volt__load_acq(slot); // [F1] with the CAS above
    return VOLT__LIKELY(current != NULL) ? current : volt__fds_make_page(f, slot, size);
}
// Returns the entry of a descriptor number, made on first use, or NULL if memory has run out or the
// number is out of range. A negative number wraps to a large one, which is out of range.
static volt__fd *volt__fd_lookup(volt__fds *f, int fd) {
    uint32_t i = (uint32_t)fd;
    if (i >= VOLT__FD_MAX) return NULL;
    void *slot = &f->dir[i / (VOLT__FD_PAGE * VOLT__FD_DIR)];
    void *dir = volt__fds_page(f, (void **)slot, sizeof(volt__fd_dir));
    if (!dir) return NULL;
    slot = &((volt__fd_dir *)dir)->page[i / VOLT__FD_PAGE % VOLT__FD_DIR];
    void *page = volt__fds_page(f, (void **)slot, VOLT__FD_PAGE * sizeof(volt__fd));
    return page ? &((volt__fd *)page)[i % VOLT__FD_PAGE] : NULL;
}
// Returns an entry that exists already, such as that of an event: the descriptor was registered
// through it. Both loads: [F1] with make_page.
static inline volt__fd *volt__fd_lookup_existing(volt__fds *f, int fd) {
    uint32_t i = (uint32_t)fd;
    volt__fd_dir *dir = volt__load_acq(&f->dir[i / (VOLT__FD_PAGE * VOLT__FD_DIR)]); // [F1]
    return &volt__load_acq(&dir->page[i / VOLT__FD_PAGE % VOLT__FD_DIR])[i % VOLT__FD_PAGE]; // [F1]
}
// Returns the error for which volt__fd_lookup returned NULL.
static int volt__fd_lookup_error(int fd) {
    return (uint32_t)fd >= VOLT__FD_MAX ? -EBADF : -ENOMEM;
}
// *f is zeroed. Returns 0 or -errno.
static int volt__fds_init(volt__fds *f, const volt_config *c) {
    f->alloc = c->alloc;
    f->n_reactors = c->reactors;
    void *epfd = f->alloc.alloc(f->alloc.user, sizeof(int) * c->workers, VOLT__CACHE_LINE);
    f->epfd = (int *)epfd;
    return epfd ? 0 : -ENOMEM;
}
// Called before the worker of that reactor runs.
static void volt__fds_attach(volt__fds *f, uint32_t reactor, int epfd) { f->epfd[reactor] = epfd; }
static void volt__fds_free_page(volt__fds *f, volt__fd *page) {
    if (!page) return;
    for (uint32_t i = 0; i < VOLT__FD_PAGE; i++)
        if (page[i].reopened_fd > 0) VOLT_SYS(close, page[i].reopened_fd);
    f->alloc.free(f->alloc.user, page, VOLT__FD_PAGE * sizeof(volt__fd));
}
static void volt__fds_free_pages(volt__fds *f) {
    for (uint32_t i = 0; i < VOLT__FD_ROOT; i++) {
        if (!f->dir[i]) continue;
        for (uint32_t j = 0; j < VOLT__FD_DIR; j++) volt__fds_free_page(f, f->dir[i]->page[j]);
        f->alloc.free(f->alloc.user, f->dir[i], sizeof(volt__fd_dir));
    }
}
static void volt__fds_destroy(volt__fds *f, uint32_t n_workers) {
    volt__fds_free_pages(f);
    if (f->epfd) f->alloc.free(f->alloc.user, f->epfd, sizeof(int) * n_workers);
}

// ---- pins

// A system call in flight holds a pin, so that its number is not closed and reused. Returns 1, or 0
// if the descriptor is closing; volt__fd_unpin must follow in both cases. A pin excludes only
// close(2), not other pins: a read costs two RMWs on the entry's own cache line and nothing else.
static inline int volt__fd_pin(volt__fd *e) {
    return !(volt__add_acq_rel(&e->pins, VOLT__FD_PIN) & VOLT__FD_IS_CLOSING); // [F2] with unpin
}
// From here on volt__fd_pin returns 0. The caller holds a pin.
static void volt__fd_begin_close(volt__fd *e) {
    uint32_t old = volt__or_acq_rel(&e->pins, VOLT__FD_IS_CLOSING); // [F2] with pin
    VOLT_ASSERT(old >= VOLT__FD_PIN);
    (void)old;
}
// Of the threads that see a closing entry without pins, one wins, and must retire the entry. It
// holds a pin until volt__fd_retire is about to close the number.
static int volt__fd_try_close(volt__fd *e) {
    uint32_t last = VOLT__FD_IS_CLOSING;
    // [F2] with unpin
    return volt__cas_acq_rel(&e->pins, &last, VOLT__FD_IS_CLOSING + VOLT__FD_PIN);
}
// Returns 1 if the caller has dropped the last pin of a closing entry, and must retire it.
static inline int volt__fd_unpin(volt__fd *e) {
    uint32_t left = volt__sub_acq_rel(&e->pins, VOLT__FD_PIN) - VOLT__FD_PIN; // [F2] with pin
    VOLT_ASSERT(left < UINT32_MAX - VOLT__FD_PIN); // else it has wrapped: no pin was held
    return VOLT__UNLIKELY(left == VOLT__FD_IS_CLOSING) && volt__fd_try_close(e);
}

// ---- registration in epoll

static inline void volt__fd_set_mode(volt__fd *e, uint8_t mode) {
    volt__store_rlx(&e->mode, mode); // rlx: under lock
}
// Returns 1 if a system call in this direction would give EAGAIN; 0 if that is not known. For
// writes, `empty` means that the file takes no more data.
static inline int volt__fd_is_known_empty(const volt__fd *e, int dir) {
    uint8_t mode = volt__load_rlx(&e->mode);   // rlx: hint, decided under lock
    uint8_t ready = volt__load_rlx(&e->ready); // rlx: hint, decided under lock
    return mode == VOLT__MODE_EDGE && !(ready & dir);
}
static uint32_t volt__fd_interest(const volt__fd *e) {
    if (e->mode == VOLT__MODE_EDGE) return EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    return EPOLLONESHOT | (e->rd ? (uint32_t)(EPOLLIN | EPOLLRDHUP) : 0) |
           (e->wr ? (uint32_t)EPOLLOUT : 0);
}
// Registers the entry's interest in epoll. ADD and MOD each fall back to the other, as the number
// may have been reopened without volt_close. If epoll refuses the file, the mode becomes ALWAYS and
// the result is 0. Returns 0 or -errno. Called under lock: it serializes all epoll_ctl of an entry.
static int volt__fd_control(volt__fds *f, volt__fd *e, int fd, int op) {
    struct epoll_event ev;
    memset(&ev, 0, sizeof ev);
    ev.events = volt__fd_interest(e);
    VOLT_ASSERT(e->reactor < f->n_reactors && ev.events != 0);
    ev.data.u64 = (uint64_t)e->gen << 32 | (uint32_t)fd;
    if (VOLT_SYS(epoll_ctl, f->epfd[e->reactor], op, fd, &ev) == 0) return 0;
    int other = errno == EEXIST ? EPOLL_CTL_MOD : errno == ENOENT ? EPOLL_CTL_ADD : 0;
    if (other && VOLT_SYS(epoll_ctl, f->epfd[e->reactor], other, fd, &ev) == 0) return 0;
    if (errno != EPERM) return -errno;
    volt__fd_set_mode(e, VOLT__MODE_ALWAYS);
    volt__store_rlx(&e->ready, (uint8_t)(VOLT__RD | VOLT__WR)); // rlx: under lock
    return 0;
}
// Returns 1 if the descriptor is still registered. If not, it was closed without volt_close, and
// its number belongs to another file by now. An ADD fails if the registration exists, but also,
// with EPERM, if epoll refuses the new file. (A MOD would report the readiness again.) Under lock.
static int volt__fd_is_registered(volt__fds *f, volt__fd *e, int fd) {
    struct epoll_event ev;
    memset(&ev, 0, sizeof ev);
    if (VOLT_SYS(epoll_ctl, f->epfd[e->reactor], EPOLL_CTL_ADD, fd, &ev) < 0) return errno != EPERM;
    VOLT_SYS(epoll_ctl, f->epfd[e->reactor], EPOLL_CTL_DEL, fd, &ev);
    return 0;
}
// Results of an attempt to wait; < 0: -errno.
//   AGAIN   Nothing is linked; the operation must be tried again.
//   LINKED  The node is linked and waits.
//   REUSED  The number was closed without volt_close and belongs to another file.
enum { VOLT__FD_AGAIN, VOLT__FD_LINKED, VOLT__FD_REUSED };
// Registers an own descriptor, unless its mode is EDGE or ALWAYS already. ADD and MOD report the
// present readiness. Returns 0, VOLT__FD_REUSED (debug builds) or -errno. Called under lock.
static int volt__fd_register(volt__fds *f, volt__fd *e, int fd, uint32_t reactor) {
    if (VOLT_DEBUG && e->mode == VOLT__MODE_EDGE && !volt__fd_is_registered(f, e, fd))
        return VOLT__FD_REUSED;
    if (e->mode == VOLT__MODE_EDGE || e->mode == VOLT__MODE_ALWAYS) return 0;
    uint8_t before = e->mode;
    VOLT_ASSERT(f->n_reactors > 0 && (before == VOLT__MODE_NONE || before == VOLT__MODE_ONESHOT));
    if (before == VOLT__MODE_NONE) e->reactor = (uint16_t)(reactor % f->n_reactors);
    volt__fd_set_mode(e, VOLT__MODE_EDGE);
    // rlx: under lock; a wrong bit costs one attempt
    volt__store_rlx(&e->ready, (uint8_t)(VOLT__RD | VOLT__WR));
    int rc = volt__fd_control(f, e, fd, before == VOLT__MODE_NONE ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
    if (rc < 0) volt__fd_set_mode(e, before);
    return rc;
}

// ---- waits

// Fires all nodes of a list, under lock. Each node's prev_ receives the generation in which it is
// fired: when its task is polled, the number may belong to another file.
static void volt__fd_fire_all(volt__fd *e, volt__node **head, uint8_t state, volt__chain *c) {
    while (*head) {
        volt__node *node = *head;
        volt__list_remove(head, node);
        node->prev_ = (volt__node *)(uintptr_t)e->gen;
        volt__node_fire(node, state, c);
    }
}
static void volt__fd_fire_waiters(volt__fd *e, uint8_t state, volt__chain *c) {
    volt__fd_fire_all(e, &e->rd, state, c);
    volt__fd_fire_all(e, &e->wr, state, c);
}
// The state of the entry before an attempt.
typedef struct volt__fd_snapshot {
    uint32_t gen, seq;
} volt__fd_snapshot;
static inline volt__fd_snapshot volt__fd_take_snapshot(const volt__fd *e) {
    volt__fd_snapshot snapshot;
    snapshot.gen = volt__load_rlx(&e->gen); // rlx: ordered by a pin [F2], or re-checked under lock
    snapshot.seq = volt__load_acq(&e->seq); // [F3] with event
    return snapshot;
}
static inline volt__node **volt__fd_waiters(volt__fd *e, int dir) {
    VOLT_ASSERT(dir == VOLT__RD || dir == VOLT__WR);
    return dir == VOLT__RD ? &e->rd : &e->wr;
}
// Called after an attempt gave EAGAIN: links the node to wait for `dir`. Returns LINKED; AGAIN if
// an event came after the snapshot, or if the file is always ready; REUSED; -EBADF if the
// descriptor is closing, or was retired after the snapshot; or -errno of epoll.
static int volt__fd_wait(volt__fds *f, volt__fd *e, int fd, uint32_t reactor, int dir,
                         volt__fd_snapshot snapshot, volt__node *node, volt__task *t) {
    volt__lock(&e->lock);
    // rlx: a close that is missed here takes this lock later, and fires the node
    int rc = volt__load_rlx(&e->pins) & VOLT__FD_IS_CLOSING || e->gen != snapshot.gen ? -EBADF : 0;
    if (rc == 0 && e->seq == snapshot.seq) {
        rc = volt__fd_register(f, e, fd, reactor);
        if (rc == 0 && e->mode != VOLT__MODE_ALWAYS) {
            volt__store_rlx(&e->ready, (uint8_t)(e->ready & ~dir)); // rlx: under lock
            volt__node_bind(node, t, e);
            volt__list_push(volt__fd_waiters(e, dir), node);
            rc = VOLT__FD_LINKED;
        }
    }
    volt__unlock(&e->lock);
    return rc;
}
// Links the node to wait for a foreign descriptor, and arms epoll in any case, because the number
// may have been reopened unnoticed. *gen is the generation in which the wait began; NULL: it begins
// here. Returns VOLT__FD_LINKED, 0 if the file is always ready, -EBADF if the descriptor was
// retired since the wait began, or another -errno.
static int volt__fd_wait_foreign(volt__fds *f, volt__fd *e, int fd, uint32_t reactor, int dir,
                                 const uint32_t *gen, volt__node *node, volt__task *t) {
    volt__lock(&e->lock);
    if (gen && e->gen != *gen) {
        volt__unlock(&e->lock);
        return -EBADF;
    }
    uint8_t before = e->mode;
    volt__node **waiters = volt__fd_waiters(e, dir);
    if (before == VOLT__MODE_NONE || before == VOLT__MODE_ALWAYS) {
        e->reactor = (uint16_t)(reactor % f->n_reactors);
        before = VOLT__MODE_NONE;
    }
    volt__fd_set_mode(e, VOLT__MODE_ONESHOT);
    volt__node_bind(node, t, e);
    volt__list_push(waiters, node);
    int rc = volt__fd_control(f, e, fd, before == VOLT__MODE_NONE ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
    if (rc < 0 || e->mode == VOLT__MODE_ALWAYS) {
        if (rc < 0) volt__fd_set_mode(e, before);
        volt__list_remove(waiters, node);
        volt__node_unbind(node, t);
    } else {
        rc = VOLT__FD_LINKED;
    }
    volt__unlock(&e->lock);
    return rc;
}
// Called by the runner to cancel a wait, or to acknowledge its wake-up. Takes the lock even if the
// node was fired: the thread that fired it may still use the node under the lock. Returns the state
// of the node, but CLOSED if the entry was retired after the node was fired. If the result is
// LINKED or FIRED, prev_ is then the generation in which the node waited.
static uint8_t volt__fd_end_wait(volt__node *node, volt__task *t, int dir) {
    volt__fd *e = (volt__fd *)node->source_;
    volt__lock(&e->lock);
    uint8_t was = volt__node_state(node);
    if (was == VOLT__LINKED) {
        volt__list_remove(volt__fd_waiters(e, dir), node);
        node->prev_ = (volt__node *)(uintptr_t)e->gen;
    } else if ((uintptr_t)node->prev_ != e->gen) {
        was = VOLT__CLOSED;
    }
    volt__unlock(&e->lock);
    volt__node_unbind(node, t);
    return was;
}
// A transfer also ends short at a page that is not mapped; then the socket need not be empty. So
// the rest of the buffer is checked, and the entry stores the result for the next operation on this
// buffer. A rest of more than VOLT__REST_MAX bytes is not checked: that would make it resident.
enum { VOLT__REST_MAX = 65536 };
// Returns 1 if the rest is known to be accessible. `done`, the bytes transferred, is > 0.
static int volt__fd_is_known_mapped(const volt__fd *e, const char *buf, size_t done, size_t len) {
    const char *end = buf + len;
    if ((((uintptr_t)buf + done - 1) ^ ((uintptr_t)end - 1)) < 4096)
        return 1; // on the page of the last byte that was transferred
    return e->mapped_end == end && e->mapped_len >= len;
}
// Returns 1 if a short transfer has emptied the socket: no event has come since `seq` was read, and
// no sticky event is pending, which no further edge would report. Called under lock.
static int volt__fd_is_emptied(const volt__fd *e, uint32_t seq) {
    return e->seq == seq && !e->sticky && e->mode == VOLT__MODE_EDGE;
}
// Called after a short read or write of a stream socket. Clears the ready bit, which saves the
// system call that would give EAGAIN. The lock is released during the check of the buffer.
static void volt__fd_mark_empty(volt__fd *e, int dir, uint32_t seq, const char *buf, size_t done,
                                size_t len) {
    volt__lock(&e->lock);
    int is_it = volt__fd_is_emptied(e, seq);
    int is_mapped = volt__fd_is_known_mapped(e, buf, done, len);
    if (is_it && !is_mapped && len - done <= VOLT__REST_MAX && len <= UINT32_MAX) {
        volt__unlock(&e->lock);
        is_mapped = VOLT_IS_MAPPED(buf + done, len - done);
        volt__lock(&e->lock);
        is_it = volt__fd_is_emptied(e, seq);
        e->mapped_end = buf + len;
        e->mapped_len = is_mapped ? (uint32_t)len : 0;
    }
    if (is_it && is_mapped)
        volt__store_rlx(&e->ready, (uint8_t)(e->ready & ~dir)); // rlx: under lock
    volt__unlock(&e->lock);
}

// Called after a call gave EAGAIN and no wait follows. Clears the ready bit, unless an event came
// since the snapshot.
static void volt__fd_mark_drained(volt__fd *e, int dir, volt__fd_snapshot snapshot) {
    volt__lock(&e->lock);
    if (e->seq == snapshot.seq && e->mode == VOLT__MODE_EDGE)
        volt__store_rlx(&e->ready, (uint8_t)(e->ready & ~dir)); // rlx: under lock
    volt__unlock(&e->lock);
}

// ---- back-off of accept
// An accept that fails for lack of descriptors or memory waits on a timer before it tries again.
// The entry stores its node, so that retiring the entry ends that wait. Other accepts on the
// descriptor that fail the same way wait in rd until the back-off ends.
//   backoff  event   to    done by                                     and then
//   NULL     begin   node  an accept, after it has armed its timer     -
//   node     begin   node  another accept                              links its node in rd
//   node     end     NULL  its task: timer expired, or cancelled       fires rd: they try again
//   node     retire  NULL  the thread that retires the entry           wakes the task: -EBADF

// Several accepts and a close may store the delay at the same time; any of them may be the last.
static void volt__fd_set_backoff(volt__fd *e, uint32_t ms) {
    volt__store_rlx(&e->backoff_ms, (uint16_t)ms); // rlx: only a delay
}
// Begins a back-off. Returns AGAIN if the node is now the entry's back-off, LINKED if another node
// is (this one is not linked yet), or -EBADF if the descriptor is closing or was retired.
static int volt__fd_back_off(volt__fd *e, uint32_t gen, volt__node *node) {
    volt__lock(&e->lock);
    // rlx: a close that is missed here takes this lock later, and wakes the task
    int rc = volt__load_rlx(&e->pins) & VOLT__FD_IS_CLOSING || e->gen != gen ? -EBADF : 0;
    if (rc == 0 && e->backoff) rc = VOLT__FD_LINKED;
    else if (rc == 0) e->backoff = node;
    volt__unlock(&e->lock);
    return rc;
}
// Links the node in rd, behind the node that backs off. Returns LINKED, or AGAIN if that back-off
// has ended or the entry was retired.
static int volt__fd_wait_behind(volt__fd *e, uint32_t gen, volt__node *node, volt__task *t) {
    volt__lock(&e->lock);
    int rc = VOLT__FD_AGAIN;
    if (e->backoff && e->gen == gen) {
        volt__node_bind(node, t, e);
        volt__list_push(&e->rd, node);
        rc = VOLT__FD_LINKED;
    }
    volt__unlock(&e->lock);
    return rc;
}
static int volt__fd_is_backing_off(volt__fd *e, const volt__node *node) {
    volt__lock(&e->lock);
    int is_it = e->backoff == node;
    volt__unlock(&e->lock);
    return is_it;
}
// Returns the entry whose back-off is this node, or NULL if that entry was retired. This is nearly
// always the entry of `fd`. If not, all entries are searched: the application may have passed
// another number than in the poll before, and no entry may keep a node that is gone.
static volt__fd *volt__fd_find_back_off(volt__fds *f, const volt__node *node, int fd) {
    volt__fd *e = volt__fd_lookup(f, fd);
    if (e && volt__fd_is_backing_off(e, node)) return e;
    for (uint32_t i = 0; i < VOLT__FD_ROOT * VOLT__FD_DIR; i++) {
        volt__fd_dir *dir = volt__load_acq(&f->dir[i / VOLT__FD_DIR]); // [F1] with make_page
        volt__fd *page = dir ? volt__load_acq(&dir->page[i % VOLT__FD_DIR]) : NULL; // [F1]
        for (uint32_t j = 0; page && j < VOLT__FD_PAGE; j++)
            if (volt__fd_is_backing_off(&page[j], node)) return &page[j];
    }
    return NULL;
}
// Ends a back-off and fires rd. Returns 1 if the node was still the entry's back-off, 0 if the
// entry was retired. *gen receives the entry's generation.
static int volt__fd_end_back_off(volt__fd *e, const volt__node *node, uint32_t *gen,
                                 volt__chain *c) {
    volt__lock(&e->lock);
    int is_it = e->backoff == node;
    if (is_it) {
        e->backoff = NULL;
        volt__fd_fire_all(e, &e->rd, VOLT__FIRED, c);
    }
    *gen = e->gen;
    volt__unlock(&e->lock);
    return is_it;
}
// Called by volt__fd_retire, under lock. The node stays in its wheel until its task removes it.
static void volt__fd_break_back_off(volt__fd *e, volt__chain *c) {
    volt__task *t = e->backoff ? volt__node_task(e->backoff) : NULL;
    e->backoff = NULL;
    if (t && volt__task_wake(t)) volt__chain_push(c, t);
}
// Ends one use of the entry. Waiters are fired as CLOSED, later events of this generation are
// dropped, and an operation that is about to wait gets -EBADF. With is_close, the caller has won
// volt__fd_try_close, and the number is closed. All of this, close(2) included, is one critical
// section, so that an operation that gets a pin before the number is gone leaves nothing behind for
// the number's next owner. Tasks to be enqueued are appended to *c.
static void volt__fd_retire(volt__fds *f, volt__fd *e, int fd, int is_close, volt__chain *c) {
    struct epoll_event ev; // Linux before 2.6.9 requires one for DEL as well
    memset(&ev, 0, sizeof ev);
    volt__lock(&e->lock);
    // rlx: under lock; an operation that gets a pin after the sub below sees it
    volt__store_rlx(&e->gen, e->gen + 1);
    volt__store_rel(&e->seq, e->seq + 1); // [F3] with operation
    if (e->mode == VOLT__MODE_EDGE || e->mode == VOLT__MODE_ONESHOT)
        VOLT_SYS(epoll_ctl, f->epfd[e->reactor], EPOLL_CTL_DEL, fd, &ev);
    volt__fd_set_mode(e, VOLT__MODE_NONE);
    volt__store_rlx(&e->flags, (uint8_t)0); // rlx: under lock
    volt__store_rlx(&e->ready, (uint8_t)0); // rlx: under lock
    e->sticky = 0;
    if (e->reopened_fd > 0) VOLT_SYS(close, e->reopened_fd);
    e->reopened_fd = 0;
    e->mapped_len = 0;
    volt__fd_set_backoff(e, 0);
    volt__fd_break_back_off(e, c);
    volt__fd_fire_waiters(e, VOLT__CLOSED, c);
    if (is_close) {
        // [F2] with pin. Before close(2): after it, the next owner of the number may pin at once
        volt__sub_acq_rel(&e->pins, VOLT__FD_IS_CLOSING + VOLT__FD_PIN);
        VOLT_SYS(close, fd); // not retried: after EINTR the descriptor is gone
    }
    volt__unlock(&e->lock);
}

// Handles an event that epoll reported; an event of an older generation is dropped. Tasks to be
// enqueued are appended to *c. Called by a poller.
static void volt__fd_event(volt__fds *f, uint64_t epoll_data, uint32_t events, volt__chain *c) {
    int fd = (int)(epoll_data & 0xffffffffu);
    volt__fd *e = volt__fd_lookup_existing(f, fd);
    volt__lock(&e->lock);
    if (e->gen == (uint32_t)(epoll_data >> 32) && e->mode != VOLT__MODE_NONE) {
        uint32_t hang = events & (uint32_t)(EPOLLHUP | EPOLLERR);
        int rd = hang || (events & (uint32_t)(EPOLLIN | EPOLLPRI | EPOLLRDHUP));
        int wr = hang || (events & EPOLLOUT);
        // urgent data as well: a read stops short at its mark, with more data behind it
        if (hang || (events & (uint32_t)(EPOLLRDHUP | EPOLLPRI))) e->sticky = 1;
        volt__store_rlx(&e->ready, // rlx: under lock; an operation that waits checks seq
                        (uint8_t)(e->ready | (rd ? VOLT__RD : 0) | (wr ? VOLT__WR : 0)));
        // [F3] an operation that failed before this event tries again
        volt__store_rel(&e->seq, e->seq + 1);
        if (rd) volt__fd_fire_all(e, &e->rd, VOLT__FIRED, c);
        if (wr) volt__fd_fire_all(e, &e->wr, VOLT__FIRED, c);
        // the event has disarmed both directions; if re-arming fails, the waiters get the error
        if (e->mode == VOLT__MODE_ONESHOT && (e->rd || e->wr) &&
            (volt__fd_control(f, e, fd, EPOLL_CTL_MOD) < 0 || e->mode == VOLT__MODE_ALWAYS))
            volt__fd_fire_waiters(e, VOLT__FIRED, c);
    }
    volt__unlock(&e->lock);
}

#else // VOLT_NO_IO: an empty table
typedef struct volt__fds {
    uint8_t none;
} volt__fds;
static inline int volt__fds_init(volt__fds *f, const volt_config *c) {
    (void)f, (void)c;
    return 0;
}
static inline void volt__fds_attach(volt__fds *f, uint32_t reactor, int epfd) {
    (void)f, (void)reactor, (void)epfd;
}
static inline void volt__fds_destroy(volt__fds *f, uint32_t n_workers) { (void)f, (void)n_workers; }
static inline void volt__fd_event(volt__fds *f, uint64_t epoll_data, uint32_t events,
                                  volt__chain *c) {
    (void)f, (void)epoll_data, (void)events, (void)c;
}
#endif

//==================================================================================================
// >>kinds  what kind of file a descriptor is
//==================================================================================================
// The first operation on a descriptor that volt has not made finds out its kind, and makes sure
// that no call on it blocks. The result is in the flags of the entry (>>fds). All of this happens
// under the lock of the entry, which volt__fd_probe takes; it is called in a poll.
#ifndef VOLT_NO_IO
static int volt__is_ip(int family) { return family == AF_INET || family == AF_INET6; }
// Returns 1 for a terminal, and for a pipe that is standard input, output or error. Other processes
// share its description: O_NONBLOCK would affect them, too, and any of them may clear it. Not for
// device 5:2, the master side of a pseudo-terminal: if reopened it would be a different terminal.
// Nor for a terminal that this program has opened with O_NONBLOCK, as volt_serial_open does.
static int volt__fd_is_shared(int fd, const struct stat *st, int mode) {
    if (S_ISFIFO(st->st_mode)) return fd <= STDERR_FILENO;
    if (fd > STDERR_FILENO && mode & O_NONBLOCK) return 0;
    return S_ISCHR(st->st_mode) && st->st_rdev != makedev(5, 2) && VOLT_SYS(isatty, fd);
}
// Returns 1 for /dev/tty, /dev/console and /dev/tty0. They stand for another terminal, which may be
// a different one when they are opened again.
static int volt__fd_is_alias(const struct stat *st) {
    return S_ISCHR(st->st_mode) && (st->st_rdev == makedev(5, 0) ||
                                    st->st_rdev == makedev(5, 1) || st->st_rdev == makedev(4, 0));
}
static int volt__is_disk(mode_t mode) { return S_ISREG(mode) || S_ISDIR(mode) || S_ISBLK(mode); }
// Makes a file that is no socket non-blocking. If shared, it is reopened, or else each call toggles
// it. Disk files stay as they are. Returns flags or -errno. Called under lock.
static int volt__fd_make_nonblocking(volt__fd *e, int fd, int mode) {
    struct stat st;
    if (VOLT_SYS(fstat, fd, &st) < 0) return -errno;
    if (volt__is_disk(st.st_mode)) return VOLT__FD_DISK;
    if (!volt__fd_is_shared(fd, &st, mode)) {
        if (mode & O_NONBLOCK) return 0;
        return VOLT_SYS(fcntl, fd, F_SETFL, mode | O_NONBLOCK) < 0 ? -errno : 0;
    }
    int reopened_fd = volt__fd_is_alias(&st) ? -1 : volt__sys_reopen(fd, mode);
    if (reopened_fd < 0) return VOLT__FD_TOGGLED; // an alias, no /proc, or another user's terminal
    e->reopened_fd = reopened_fd;
    return VOLT__FD_REOPENED;
}
// A socket can stay blocking for calls that pass MSG_DONTWAIT; others want NONBLOCK. Returns flags
// or -errno. Called under lock.
static int volt__fd_probe_socket(int fd, int mode, int wanted) {
    int protocol = 0;
    socklen_t len = sizeof protocol;
    int flags = VOLT__FD_SOCKET;
    if (VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
        protocol == IPPROTO_TCP)
        flags |= VOLT__FD_STREAM;
    if (wanted & VOLT__FD_NONBLOCK && !(mode & O_NONBLOCK) &&
        VOLT_SYS(fcntl, fd, F_SETFL, mode | O_NONBLOCK) < 0)
        return -errno;
    return flags;
}
// Finds out the kind of a descriptor that volt has not made, and makes sure that no call on it
// blocks. `wanted`: VOLT__FD_SOCKET if the call is for sockets only, VOLT__FD_NONBLOCK if it may
// block without O_NONBLOCK. Stores and returns the entry's flags. Returns -ENOTSOCK; -EBADF if the
// entry was retired since `gen`; or another -errno. All of this is one critical section: the entry
// is not retired halfway.
static int volt__fd_probe(volt__fd *e, int fd, uint32_t gen, int wanted) {
    int type = 0, rc;
    socklen_t len = sizeof type;
    volt__lock(&e->lock);
    int mode = VOLT_SYS(fcntl, fd, F_GETFL);
    if (e->gen != gen) rc = -EBADF; // reopening would open another file
    else if (mode < 0) rc = -errno;
    else if (VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0)
        rc = volt__fd_probe_socket(fd, mode, wanted);
    else if (wanted & VOLT__FD_SOCKET && errno == ENOTSOCK)
        rc = -ENOTSOCK; // its mode must not change
    else rc = e->reopened_fd > 0 ? 0 : volt__fd_make_nonblocking(e, fd, mode);
    if (rc >= 0) rc |= VOLT__FD_PROBED | (wanted & VOLT__FD_NONBLOCK);
    if (rc >= 0 && e->reopened_fd > 0) rc |= VOLT__FD_REOPENED; // another task may have reopened it
    // rlx: under lock. Not if the entry was retired: the next file of the number is probed itself
    if (e->gen == gen) volt__store_rlx(&e->flags, (uint8_t)(rc < 0 ? 0 : rc));
    volt__unlock(&e->lock);
    return rc;
}

#endif

//==================================================================================================
// >>reactor  epoll instances, their eventfds and timers
//==================================================================================================
// A reactor is the epoll instance of a worker, with the eventfd that unparks the worker. A guest
// has a timerfd as well, because its application waits on the epoll instance itself.
//   - volt__fd_control adds the descriptors of the table. Their events carry the generation and the
//     number; the eventfd, the watchdog and the timerfd carry the three reserved values below.
//   - An unpark is not lost: the eventfd stays readable until the worker itself reads it.
// Callers of the volt__reactor_ functions:
//   init, deinit             the thread that creates or destroys the worker
//   poll                     the worker, or a worker that rescues it
//   unpark                   any thread
//   acknowledge, set_timer   the worker
typedef struct volt__reactor {
    int epfd, evfd;
    int timer_fd;           // guest: expires when the worker must run; else -1
    volt_time timer_set_to; // guest: the deadline that timer_fd is set to
    uint32_t index;         // of the worker
} volt__reactor;
// The result of one volt__reactor_poll.
typedef struct volt__reactor_events {
    volt__chain chain;         // tasks to be enqueued
    uint32_t n_events;
    uint32_t was_unparked;     // the eventfd was readable
    uint32_t watchdog_expired; // the watchdog expired, or a full batch may hide its expiry
} volt__reactor_events;
// No event of the table has these values: their low half is no number that the table takes.
#define VOLT__EPOLL_EVENTFD UINT64_MAX
#define VOLT__EPOLL_WATCHDOG (UINT64_MAX - 1)
#define VOLT__EPOLL_TIMER (UINT64_MAX - 2)

static int volt__reactor_add(volt__reactor *r, int fd, uint32_t events, uint64_t epoll_data) {
    struct epoll_event ev;
    memset(&ev, 0, sizeof ev);
    ev.events = events;
    ev.data.u64 = epoll_data;
    return VOLT_SYS(epoll_ctl, r->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}
static void volt__reactor_deinit(volt__reactor *r) {
    if (r->timer_fd >= 0) VOLT_SYS(close, r->timer_fd);
    if (r->evfd >= 0) VOLT_SYS(close, r->evfd);
    if (r->epfd >= 0) VOLT_SYS(close, r->epfd);
    r->timer_fd = r->evfd = r->epfd = -1;
}
// Returns 0, or the error of epoll_wait: a seccomp filter may refuse this call, without which no
// worker can run.
static int volt__reactor_test(const volt__reactor *r) {
    struct epoll_event ev;
    int rc = VOLT_EPOLL_WAIT(r->epfd, &ev, 1, 0);
    return rc < 0 && rc != -EINTR ? rc : 0;
}
// The epoll instance also contains the watchdog, if watchdog_fd >= 0. With EPOLLEXCLUSIVE, an
// expiry usually wakes one parked worker, not all (before Linux 4.5: all). Returns 0, or -errno
// with all descriptors closed.
static int volt__reactor_init(volt__reactor *r, uint32_t index, int watchdog_fd) {
    int rc = 0;
    r->index = index;
    r->timer_fd = -1;
    r->epfd = VOLT_SYS(epoll_create1, EPOLL_CLOEXEC);
    r->evfd = r->epfd < 0 ? -errno : volt__sys_eventfd();
    if (r->evfd < 0) rc = r->evfd;
    // Level-triggered, and read by this worker only: another worker that rescues this one polls the
    // reactor, too, and must not swallow the wake-up.
    if (rc == 0) rc = volt__reactor_add(r, r->evfd, EPOLLIN, VOLT__EPOLL_EVENTFD);
    if (rc == 0 && watchdog_fd >= 0) {
        rc = volt__reactor_add(r, watchdog_fd, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE,
                               VOLT__EPOLL_WATCHDOG);
        if (volt__sys_is_unsupported(-rc))
            rc = volt__reactor_add(r, watchdog_fd, EPOLLIN | EPOLLET, VOLT__EPOLL_WATCHDOG);
    }
    if (rc == 0) rc = volt__reactor_test(r);
    if (rc < 0) volt__reactor_deinit(r);
    return rc;
}

// ---- timerfds: of the watchdog, and of a guest

static int volt__timer_fd_open(void) {
    int fd = VOLT_SYS(timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}
// Sets the timer to expire in `left` ns; < 0: never. An earlier expiry that was not read is
// dropped.
static void volt__timer_fd_set(int fd, int64_t left) {
    struct itimerspec t;
    VOLT_ASSERT(fd >= 0);
    memset(&t, 0, sizeof t);
    if (left == 0) left = 1; // 0 would disarm it
    if (left > 0) {
        t.it_value.tv_sec = (time_t)(left / 1000000000);
        t.it_value.tv_nsec = (long)(left % 1000000000);
    }
    VOLT_SYS(timerfd_settime, fd, 0, &t, NULL);
}
// Called after volt__reactor_init. Returns 0 or -errno; in both cases deinit closes the timerfd.
static int volt__reactor_init_guest(volt__reactor *r) {
    int fd = volt__timer_fd_open();
    if (fd < 0) return fd;
    r->timer_fd = fd;
    r->timer_set_to = VOLT_NEVER;
    return volt__reactor_add(r, fd, EPOLLIN, VOLT__EPOLL_TIMER);
}
// Sets the timer of a guest to the deadline `at`, which is `left` ns from now (VOLT_NEVER: -1). The
// timerfd is never read, and stays readable after its expiry, so the same deadline need not be set
// again.
static void volt__reactor_set_timer(volt__reactor *r, volt_time at, int64_t left) {
    if (at == r->timer_set_to) return;
    r->timer_set_to = at;
    volt__timer_fd_set(r->timer_fd, left);
}

// ---- wake-ups and events

static void volt__reactor_unpark(volt__reactor *r) {
    uint64_t one = 1; // EAGAIN: the counter is full, so the eventfd is readable
    VOLT_ASSERT(r->evfd >= 0);
    while (VOLT_SYS(write, r->evfd, &one, sizeof one) < 0 && errno == EINTR) {}
}
static void volt__reactor_acknowledge(volt__reactor *r) {
    uint64_t n;
    while (VOLT_SYS(read, r->evfd, &n, sizeof n) < 0 && errno == EINTR) {}
}
// Waits for at most `timeout` ns (< 0: no limit) and handles the events. Their number is limited to
// `room`, since each may make tasks runnable, and to VOLT_EVENTS; a room of 0 counts as 1. An error
// of epoll_wait, such as EINTR, counts as no event.
static void volt__reactor_poll(volt__reactor *r, volt__fds *f, uint32_t room, int64_t timeout,
                               volt__reactor_events *out) {
    struct epoll_event ev[VOLT_EVENTS];
    int max = (int)volt__min32(room ? room : 1, VOLT_EVENTS);
    memset(out, 0, sizeof *out);
    int n = VOLT_EPOLL_WAIT(r->epfd, ev, max, timeout);
    VOLT_ASSERT(n <= max);
    if (n == max) out->watchdog_expired = 1; // the expiry may be the next event
    for (int i = 0; i < n; i++) {
        uint64_t epoll_data = ev[i].data.u64;
        if (epoll_data == VOLT__EPOLL_EVENTFD) {
            out->was_unparked = 1;
        } else if (epoll_data == VOLT__EPOLL_WATCHDOG) {
            out->watchdog_expired = 1;
        } else if (epoll_data != VOLT__EPOLL_TIMER) { // a timer only ends the wait
            out->n_events++;
            volt__fd_event(f, epoll_data, ev[i].events, &out->chain);
        }
    }
}

//==================================================================================================
// >>idle  which workers sleep, which search
//==================================================================================================
// The idle set decides which worker is woken for a task: `searching` counts the workers that
// search, and each parked worker has its bit set. Any thread that pushes a task may claim a parked
// worker; the worker itself makes all other transitions. No lock is involved. A parked worker may
// sleep without a time limit, so no interleaving of a push and a park may lose the wake-up:
//
//     pusher                                      sleeper
//       publish the task   [Q1] [Q3]                set own bit, leave `searching`   [I2]
//       fence              [I1]                     fence                            [I1]
//       searching != 0 or no bit set: done          searching == 0, which is without itself: scan
//       else claim a parked worker                  the queues; found a task: search, else sleep
//
// If either fence were missing, each side might read the old value of the other's word. The pusher
// would see a searching worker that has scanned already, or no parked one. The sleeper would not
// see the task. With both fences at least one side sees the store of the other. A pusher that sees
// a searching worker leaves the task to it, and a sleeper that sees one does not scan: the last
// worker to leave `searching` scans the queues again.
//
// Only a worker that is counted in `searching` steals. A worker leaves the parked set when its bit
// is cleared: by the worker itself, or by a claimer, which counts the worker as searching first.
// The old value of the fetch_and that clears the bit tells the worker which of the two it was.
//
//   from       event   to         done by                         and then
//   awake      search  searching  worker, if less than half do    steals
//   awake      rescue  searching  worker, without that limit      takes the tasks of a stuck worker
//   either     park    parked     worker without tasks            fence; scans if searching == 0
//   parked     claim   searching  pusher, if searching == 0       writes the worker's eventfd
//   parked     unpark  awake      worker: event, timer, watchdog  (searching if claimed before)
//   parked     return  searching  worker: found work, or stopped  (counted already if claimed)
//   searching  leave   awake      worker: has a task              the last one scans, wakes another
#define VOLT__IDLE_BITS ((uint32_t)(sizeof(uintptr_t) * 8))
#define VOLT__IDLE_WORDS ((VOLT_MAX_WORKERS + VOLT__IDLE_BITS - 1) / VOLT__IDLE_BITS)
typedef struct volt__idle {
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) uint32_t searching; // any, rmw [I2]: workers that search
    // any, rmw [I2]: the bits of parked workers are set
    uintptr_t parked[VOLT__IDLE_WORDS];
    uint32_t n_words; // once: words in use
} volt__idle;

static void volt__idle_init(volt__idle *idle, uint32_t n_workers) {
    VOLT_ASSERT(n_workers > 0 && n_workers <= VOLT_MAX_WORKERS);
    memset(idle, 0, sizeof *idle);
    idle->n_words = (n_workers + VOLT__IDLE_BITS - 1) / VOLT__IDLE_BITS;
}
static inline uintptr_t volt__idle_bit(uint32_t worker) {
    return (uintptr_t)1 << worker % VOLT__IDLE_BITS;
}
static inline int volt__idle_is_parked(const volt__idle *idle, uint32_t worker) {
    // rlx: hint
    return (volt__load_rlx(&idle->parked[worker / VOLT__IDLE_BITS]) & volt__idle_bit(worker)) != 0;
}
static inline int volt__idle_has_parked(const volt__idle *idle) {
    uintptr_t any = 0;
    // rlx: ordered by [I1] in claim; elsewhere a hint
    for (uint32_t i = 0; i < idle->n_words; i++) any |= volt__load_rlx(&idle->parked[i]);
    return any != 0;
}
// Returns the number of parked workers, not counting `worker`.
static uint32_t volt__idle_count_others(const volt__idle *idle, uint32_t worker) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < idle->n_words; i++) {
        uintptr_t bits = volt__load_rlx(&idle->parked[i]); // rlx: ordered by [W1], or a hint
        if (i == worker / VOLT__IDLE_BITS) bits &= ~volt__idle_bit(worker);
        n += (uint32_t)__builtin_popcountl(bits);
    }
    return n;
}
// Counts the caller as searching, if less than half of the started workers search. Returns 1 if the
// caller is counted. Returns 0 if it must not steal: enough workers search, or another worker has
// changed the count at the same time.
static int volt__idle_begin_search(volt__idle *idle, uint32_t n_started) {
    uint32_t n = volt__load_rlx(&idle->searching); // rlx: hint, re-checked by the CAS
    // [I2] with end_search
    return 2 * n < n_started && volt__cas_acq_rel(&idle->searching, &n, n + 1);
}
// Counts the caller without that limit: a worker that rescues others, or whose scan has found work,
// must be able to steal.
static void volt__idle_begin_search_always(volt__idle *idle) {
    volt__add_acq_rel(&idle->searching, 1); // [I2] with end_search
}
// Sets the worker's bit, and ends its search. From here on a pusher may claim this worker. Returns
// the number of workers that still search; if it is 0, the caller must scan the queues before it
// sleeps.
static uint32_t volt__idle_park(volt__idle *idle, uint32_t worker, int is_searching) {
    uint32_t left;
    uintptr_t bit = volt__idle_bit(worker);
    // [I2] with claim
    uintptr_t old = volt__or_acq_rel(&idle->parked[worker / VOLT__IDLE_BITS], bit);
    VOLT_ASSERT(!(old & bit));
    (void)old;
    if (is_searching) {
        left = volt__sub_acq_rel(&idle->searching, 1) - 1; // [I2] with claim
        VOLT_ASSERT(left < VOLT_MAX_WORKERS);
        volt__fence_sc(&idle->searching);               // [I1] with claim
    } else {
        volt__fence_sc(&idle->searching);        // [I1] with claim
        left = volt__load_rlx(&idle->searching); // rlx: ordered by [I1]
    }
    return left;
}
// Clears the worker's bit. Returns 1 if another thread did so before: that thread has claimed the
// worker and counted it as searching. Returns 0 if this call has cleared the bit.
static int volt__idle_unpark(volt__idle *idle, uint32_t worker) {
    uintptr_t bit = volt__idle_bit(worker);
    // [I2] with claim
    return !(volt__and_acq_rel(&idle->parked[worker / VOLT__IDLE_BITS], ~bit) & bit);
}
// Called instead of sleeping, if the scan has found work or the runtime has stopped. The worker is
// counted as searching from here on: by this call, or by a claimer that came before it.
static void volt__idle_unpark_searching(volt__idle *idle, uint32_t worker) {
    if (!volt__idle_unpark(idle, worker)) volt__idle_begin_search_always(idle);
}
// Returns the first parked worker from `from` on, wrapping around, or -1 if none is parked.
static int volt__idle_find(const volt__idle *idle, uint32_t from) {
    VOLT_ASSERT(from / VOLT__IDLE_BITS < idle->n_words);
    // the first word comes up again at the end, then with the bits below `from`
    for (uint32_t k = 0; k <= idle->n_words; k++) {
        uint32_t i = (from / VOLT__IDLE_BITS + k) % idle->n_words;
        uintptr_t bits = volt__load_rlx(&idle->parked[i]); // rlx: hint
        if (k == 0) bits &= UINTPTR_MAX << from % VOLT__IDLE_BITS;
        if (bits) return (int)(i * VOLT__IDLE_BITS) + __builtin_ctzl(bits);
    }
    return -1;
}
#define VOLT__ANY_WORKER (-1)
// Clears the bit of `first` if it is parked, else that of the parked worker with the highest index:
// worker 0 may be a guest, whose thread has other work as well. Returns the index of the worker, or
// -1 if none is parked. `first` may be VOLT__ANY_WORKER.
static int volt__idle_claim_bit(volt__idle *idle, int first) {
    if (first >= 0 && volt__idle_is_parked(idle, (uint32_t)first) &&
        !volt__idle_unpark(idle, (uint32_t)first))
        return first;
    for (uint32_t i = idle->n_words; i-- > 0;) {
        uintptr_t bits = volt__load_rlx(&idle->parked[i]); // rlx: hint, re-checked by the RMW
        while (bits) {
            int top = volt__highest_bit(bits);
            uintptr_t bit = (uintptr_t)1 << top;
            uintptr_t old = volt__and_acq_rel(&idle->parked[i], ~bit); // [I2] with park
            if (old & bit) return (int)(i * VOLT__IDLE_BITS) + top;
            bits = old;
        }
    }
    return -1;
}
// Called by any thread after it has published a task. Returns the worker to unpark, or -1 if no
// worker needs to be woken. Counts the worker as searching before its bit is cleared. If no parked
// worker is found then, uncounts it and tries again, because other pushers that have seen the count
// may have skipped their wake-up.
static int volt__idle_claim(volt__idle *idle, int first) {
    volt__fence_sc(&idle->searching); // [I1] with park
    for (;;) {
        if (volt__load_rlx(&idle->searching) != 0) return -1; // rlx: ordered by [I1]
        if (!volt__idle_has_parked(idle)) return -1;
        uint32_t none = 0;
        if (!volt__cas_acq_rel(&idle->searching, &none, 1)) return -1; // [I2] with park
        int worker = volt__idle_claim_bit(idle, first);
        VOLT_ASSERT(worker < (int)VOLT_MAX_WORKERS);
        if (worker >= 0) return worker;
        volt__sub_acq_rel(&idle->searching, 1); // [I2] with park
        volt__fence_sc(&idle->searching);       // [I1] with park
    }
}
// Called by a searching worker that has found a task. Returns 1 if it was the last one that
// searched: it must then scan the queues, and wake a worker if they hold more.
static int volt__idle_end_search(volt__idle *idle) {
    uint32_t old = volt__sub_acq_rel(&idle->searching, 1); // [I2] with claim
    VOLT_ASSERT(old > 0 && old <= VOLT_MAX_WORKERS);
    if (old != 1) return 0;
    volt__fence_sc(&idle->searching);                       // [I1] with claim
    return 1;
}

//==================================================================================================
// >>pool  threads for blocking calls
//==================================================================================================
// The pool runs jobs, which may block, on threads of its own. The thread that became idle last is
// taken first; if none is idle, a new one starts. A thread that stays idle for VOLT_POOL_IDLE_NS
// exits. Each job belongs to a lane, of which at most `limit` jobs run at once, so that jobs of one
// kind cannot use up all threads.
//   - A job is queued only while some thread will look for it.
//   - The pool does not own the memory of a job. The thread that starts a job copies the fields
//     that it needs, under the lock: the job may be gone as soon as the lock is released.
//   - An exiting thread joins the one that exited before it, so at most one exited thread is left.
//   - Under the lock no allocator hook and no function of a job is called, and no thread is created
//     or joined.
// Other sections call these functions, all without the lock but cancel:
//   submit  any thread, before all tasks have ended
//   cancel  a task that waits for the job, or the thread that has handed its worker off; under lock
//   close   any thread, after all tasks have ended; a second caller waits for the first
//
// The states of a job, which change under the pool's lock. Only a cancel ends in none; a section
// that uses a job again sets it back itself.
//   from              event   to        done by                           and then
//   none              submit  assigned  the submitter: a thread is idle   wakes that thread
//   none              submit  assigned  the submitter: the lane has room  starts a thread
//   none              submit  queued    the submitter: the lane is full   -
//   queued            take    started   a thread that has ended its job   runs it
//   assigned          take    started   its thread                        runs it
//   assigned          fail    assigned  the submitter: no thread starts   see volt__pool_requeue
//                             or queued
//   queued            fail    started   the same, for its whole lane      calls fail_
//   queued, assigned  cancel  none      see above                         (its thread finds none)
#ifndef VOLT_SINGLE_THREAD
// WORK: blocking calls and file operations; NAMES: host names; HANDOFF: carriers of workers
enum { VOLT__LANE_WORK, VOLT__LANE_NAMES, VOLT__LANE_HANDOFF, VOLT__LANES };
enum { VOLT__JOB_NONE, VOLT__JOB_QUEUED, VOLT__JOB_ASSIGNED, VOLT__JOB_STARTED };
typedef struct volt__lane {
    volt_job *head, *tail;
    uint32_t n_running, limit; // running: assigned or started; limit: once
} volt__lane;
typedef struct volt__pool volt__pool;
typedef struct volt__pool_thread {
    struct volt__pool_thread *next; // under lock: in the list of idle threads
    volt__pool *pool;
    volt_job *job;        // under lock: assigned, not started
    volt__parker parker;  // set and reset under lock [P1]
    uint32_t is_idle;     // under lock: is in the list of idle threads
    pthread_t thread;
} volt__pool_thread;
struct volt__pool {
    VOLT__ALIGN(VOLT__CACHE_LINE) uint32_t lock;
    uint32_t n_threads;             // futex word; W under lock, R any [H2]: running or starting
    uint32_t n_idle, is_closing;    // under lock
    // volt__pool_close, or NULL before the first submit: programs that never submit do not link it.
    // Under lock; also read by the thread that has seen the end of all tasks
    uint32_t (*close)(volt__pool *p, volt_time deadline);
    uint32_t close_lock;            // serializes the callers of close
    uint32_t is_closed;             // W under close_lock, R any [H2]: all threads are joined
    volt__pool_thread *idle;        // under lock: list, most recently idle first
    volt__pool_thread *exited;      // under lock: the thread that exited last, to be joined
    volt__lane lane[VOLT__LANES];   // under lock
    uint64_t n_queued, n_jobs;      // under lock: queued now; started so far
    volt_allocator alloc;           // once
    size_t stack_size;              // once
};

// Creates a thread with all asynchronous signals blocked. Returns 0 or -errno.
static int volt__thread_create(pthread_t *thread, size_t stack_size, void *(*fn)(void *),
                               void *arg) {
    pthread_attr_t attr;
    sigset_t before;
    int rc = VOLT_SYS(pthread_attr_init, &attr);
    if (rc != 0) return -rc;
    // A C library may refuse a small stack (on AArch64 below 128 KiB), and would then use its
    // default of megabytes. So a refused size is doubled, up to VOLT_STACK_SIZE at least.
    for (size_t n = stack_size;
         VOLT_SYS(pthread_attr_setstacksize, &attr, n) != 0 && n < VOLT_STACK_SIZE; n *= 2) {}
    volt__sys_block_signals(&before);
    rc = VOLT_THREAD_CREATE(thread, &attr, fn, arg);
    volt__sys_restore_signals(&before);
    VOLT_SYS(pthread_attr_destroy, &attr);
    return -rc;
}

static void volt__pool_init(volt__pool *p, const volt_config *c) { // *p is zeroed
    p->alloc = c->alloc;
    p->stack_size = c->stack_size;
    p->lane[VOLT__LANE_WORK].limit = c->max_blocking_threads;
    p->lane[VOLT__LANE_NAMES].limit = VOLT_POOL_NAMES;
    p->lane[VOLT__LANE_HANDOFF].limit = UINT32_MAX;
}
static void volt__lane_push(volt__lane *l, volt_job *job) {
    job->next_ = NULL;
    job->prev_ = l->tail;
    if (l->tail) l->tail->next_ = job;
    else l->head = job;
    l->tail = job;
    job->state_ = VOLT__JOB_QUEUED;
}
static void volt__lane_remove(volt__lane *l, volt_job *job) {
    if (job->prev_) job->prev_->next_ = job->next_;
    else l->head = job->next_;
    if (job->next_) job->next_->prev_ = job->prev_;
    else l->tail = job->prev_;
}
static void volt__pool_enqueue(volt__pool *p, volt_job *job) {
    volt__lane_push(&p->lane[job->lane_], job);
    p->n_queued++;
}
static void volt__pool_assign(volt__pool *p, volt__pool_thread *t, volt_job *job) {
    VOLT_ASSERT(!t->job);
    p->lane[job->lane_].n_running++;
    job->state_ = VOLT__JOB_ASSIGNED;
    job->thread_ = t;
    t->job = job;
}
static volt__pool_thread *volt__pool_pop_idle(volt__pool *p) {
    volt__pool_thread *t = p->idle;
    if (!t) return NULL;
    p->idle = t->next;
    p->n_idle--;
    t->is_idle = 0;
    volt__store_rel(&t->parker.is_set, 1); // [P1] the caller wakes the thread after unlock
    return t;
}
static void volt__pool_remove_idle(volt__pool *p, volt__pool_thread *t) {
    volt__pool_thread **at = &p->idle;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    p->n_idle--;
    t->is_idle = 0;
}
// Joins a thread that has exited or is about to, and frees it.
static void volt__pool_join_thread(volt__pool *p, volt__pool_thread *thread_or_null) {
    if (!thread_or_null) return;
    VOLT_THREAD_JOIN(thread_or_null->thread);
    p->alloc.free(p->alloc.user, thread_or_null, sizeof *thread_or_null);
}
static void volt__pool_join_exited(volt__pool *p) {
    volt__lock(&p->lock);
    volt__pool_thread *t = p->exited;
    p->exited = NULL;
    volt__unlock(&p->lock);
    volt__pool_join_thread(p, t);
}

// ---- pool threads

typedef struct volt__work {
    void (*run)(void *arg);
    void *arg;
    uint32_t lane;
} volt__work;
// Returns the job that is assigned to the thread. If there is none, assigns it the first queued job
// of a lane that has room, or returns NULL. Called under lock.
static volt_job *volt__pool_next_job(volt__pool *p, volt__pool_thread *t) {
    if (t->job) return t->job;
    for (int i = 0; i < VOLT__LANES; i++) {
        volt__lane *l = &p->lane[i];
        volt_job *job = l->head;
        if (!job || l->n_running >= l->limit) continue;
        volt__lane_remove(l, job);
        p->n_queued--;
        volt__pool_assign(p, t, job);
        return job;
    }
    return NULL;
}
// Marks the thread's next job as started, and copies the fields that are needed to run it: the job
// may lie on its submitter's stack, and may be gone after the unlock. Returns 1, or 0 if there is
// no job. Called under lock.
static int volt__pool_begin_job(volt__pool *p, volt__pool_thread *t, volt__work *work) {
    volt_job *job = volt__pool_next_job(p, t);
    if (!job) return 0;
    t->job = NULL;
    job->state_ = VOLT__JOB_STARTED;
    p->n_jobs++;
    work->run = job->run_;
    work->arg = job->arg_;
    work->lane = job->lane_;
    return 1;
}
// Waits in the list of idle threads. Returns 1 if the thread must exit, because it was idle for
// long enough or the pool is closing, 0 if it must look for a job. Called under lock, which is
// released during the wait.
static int volt__pool_wait_for_job(volt__pool *p, volt__pool_thread *t) {
    if (p->is_closing) return 1;
    t->next = p->idle;
    p->idle = t;
    p->n_idle++;
    t->is_idle = 1;
    volt__store_rlx(&t->parker.is_set, 0); // rlx: under lock, as is the store of 1
    volt__unlock(&p->lock);
    int rc = volt__parker_wait(&t->parker, volt__deadline(VOLT_POOL_IDLE_NS));
    volt__lock(&p->lock);
    if (!t->is_idle) return 0; // was given a job, perhaps cancelled by now, or the pool closes
    volt__pool_remove_idle(p, t);
    return rc < 0;
}
static void *volt__pool_main(void *arg) {
    volt__pool_thread *t = (volt__pool_thread *)arg;
    volt__pool *p = t->pool;
    volt__work work;
    volt__sys_name_thread("volt-pool");
    volt__lock(&p->lock);
    do {
        while (volt__pool_begin_job(p, t, &work)) {
            volt__unlock(&p->lock);
            work.run(work.arg);
            volt__lock(&p->lock);
            p->lane[work.lane].n_running--;
        }
    } while (!volt__pool_wait_for_job(p, t));
    volt__pool_thread *before = p->exited;
    p->exited = t;
    volt__store_rel(&p->n_threads, p->n_threads - 1); // [H2] with close
    volt__unlock(&p->lock);
    VOLT_FUTEX_WAKE(&p->n_threads, INT_MAX); // *p is not freed before this thread is joined
    volt__pool_join_thread(p, before); // so at most one exited thread keeps its stack
    return NULL;
}

// ---- submitting, cancelling, closing

// Removes all queued jobs of a lane and returns them as a list by next_. Called under lock.
static volt_job *volt__pool_take_queued(volt__pool *p, volt__lane *l) {
    volt_job *all = l->head;
    for (volt_job *job = all; job; job = job->next_) {
        job->state_ = VOLT__JOB_STARTED; // can no longer be cancelled
        p->n_queued--;
    }
    l->head = l->tail = NULL;
    return all;
}
// Returns the number of threads that are neither idle nor have a job: each of them is about to look
// for one. Called under lock.
static uint32_t volt__pool_count_seeking(const volt__pool *p) {
    uint32_t n = p->n_threads - p->n_idle;
    for (int i = 0; i < VOLT__LANES; i++) n -= p->lane[i].n_running;
    return n;
}
// Called when the thread for this job could not be started. Assigns the job to a thread that has
// become idle. Else queues it, if a thread that runs a job of the lane, or is about to look for
// one, will take it later. A handoff is never queued, because its worker would stand still. Else
// fails all jobs that are queued in the lane, and returns `error` for this one, without a call of
// its fail_. Otherwise returns 0.
static int volt__pool_requeue(volt__pool *p, volt_job *job, int error) {
    volt_job *lost = NULL;
    volt__lock(&p->lock);
    volt__lane *l = &p->lane[job->lane_];
    volt__pool_thread *idle = volt__pool_pop_idle(p);
    l->n_running--;
    volt__store_rel(&p->n_threads, p->n_threads - 1); // [H2] with close
    uint32_t n_coming = l->n_running + volt__pool_count_seeking(p);
    int is_queued = job->lane_ != VOLT__LANE_HANDOFF && n_coming > 0;
    if (idle) volt__pool_assign(p, idle, job);
    else if (is_queued) volt__pool_enqueue(p, job);
    else lost = volt__pool_take_queued(p, l);
    volt__unlock(&p->lock);
    if (idle) VOLT_FUTEX_WAKE(&idle->parker.is_set, 1); // uses the address only: *idle may be gone
    while (lost) {
        volt_job *next = lost->next_;
        lost->fail_(lost->arg_, error);
        lost = next;
    }
    return idle || is_queued ? 0 : error;
}
// Starts a thread for a job. n_threads and n_running count the two already. Returns the result of
// volt__pool_submit.
static int volt__pool_start(volt__pool *p, volt_job *job) {
    volt__pool_join_exited(p);
    volt__pool_thread *t =
        (volt__pool_thread *)p->alloc.alloc(p->alloc.user, sizeof *t, VOLT__CACHE_LINE);
    if (!t) return volt__pool_requeue(p, job, -ENOMEM);
    memset(t, 0, sizeof *t);
    t->pool = p;
    t->job = job;
    job->thread_ = t;
    int rc = volt__thread_create(&t->thread, p->stack_size, volt__pool_main, t);
    if (rc == 0) return 0;
    p->alloc.free(p->alloc.user, t, sizeof *t);
    return volt__pool_requeue(p, job, rc);
}
// Returns 1 if the job had not started and never will, 0 if it has started or ended. Called under
// lock.
static int volt__pool_cancel(volt__pool *p, volt_job *job) {
    if (job->state_ == VOLT__JOB_QUEUED) {
        volt__lane_remove(&p->lane[job->lane_], job);
        p->n_queued--;
    } else if (job->state_ == VOLT__JOB_ASSIGNED) {
        job->thread_->job = NULL;
        p->lane[job->lane_].n_running--;
    } else {
        return 0;
    }
    job->state_ = VOLT__JOB_NONE;
    return 1;
}
// Marks the pool as closing, and wakes all idle threads, which then exit.
static void volt__pool_retire_idle(volt__pool *p) {
    volt__pool_thread *t;
    do {
        volt__lock(&p->lock);
        p->is_closing = 1;
        t = volt__pool_pop_idle(p);
        volt__unlock(&p->lock);
        if (t) VOLT_FUTEX_WAKE(&t->parker.is_set, 1); // uses the address only
    } while (t);
}
static uint32_t volt__pool_count_running(volt__pool *p) {
    uint32_t n = 0;
    volt__lock(&p->lock);
    for (int i = 0; i < VOLT__LANES; i++) n += p->lane[i].n_running;
    volt__unlock(&p->lock);
    return n;
}
// Waits until all threads have exited, or until the deadline if jobs still run then. Threads
// without a job exit soon, so they are waited for even after the deadline. Returns the number of
// running jobs. Called under close_lock.
static uint32_t volt__pool_wait_exited(volt__pool *p, volt_time deadline) {
    for (;;) {
        // [H2] with the end of a thread. Before the join: if n is 0, the last thread is in `exited`
        uint32_t n = volt__load_acq(&p->n_threads);
        volt__pool_join_exited(p);
        if (n == 0) return 0;
        if (VOLT_FUTEX_WAIT(&p->n_threads, n, deadline) != -ETIMEDOUT) continue;
        n = volt__pool_count_running(p);
        if (n > 0) return n;
        deadline = VOLT_NEVER;
    }
}
// Called after the last submit. Waits until all threads have exited, or until the deadline. Returns
// the number of jobs that still run, 1 also if another caller is still closing at the deadline.
static uint32_t volt__pool_close(volt__pool *p, volt_time deadline) {
    uint32_t n = 1;
    volt__pool_retire_idle(p);
    if (!volt__lock_until(&p->close_lock, deadline)) return n;
    n = volt__pool_wait_exited(p, deadline);
    if (n == 0) volt__store_rel(&p->is_closed, 1); // [H2] with destroy
    volt__unlock(&p->close_lock);
    return n;
}
// Returns 0, or -errno if no thread will ever run the job; then its fail_ is not called.
static int volt__pool_submit(volt__pool *p, volt_job *job) {
    volt__pool_thread *idle = NULL;
    volt__lock(&p->lock);
    volt__lane *l = &p->lane[job->lane_];
    int has_room = l->n_running < l->limit;
    VOLT_ASSERT(!p->is_closing);
    p->close = volt__pool_close;
    if (!has_room) {
        volt__pool_enqueue(p, job);
    } else if ((idle = volt__pool_pop_idle(p)) != NULL) {
        volt__pool_assign(p, idle, job);
    } else {
        l->n_running++;
        job->state_ = VOLT__JOB_ASSIGNED;
        volt__store_rel(&p->n_threads, p->n_threads + 1); // [H2] with close
    }
    volt__unlock(&p->lock);
    if (idle) VOLT_FUTEX_WAKE(&idle->parker.is_set, 1); // uses the address only: *idle may be gone
    return !has_room || idle ? 0 : volt__pool_start(p, job);
}
#endif

//==================================================================================================
// >>rt  what a runtime and a worker are
//==================================================================================================
// The structs of a runtime and of a worker. The sections below are the code that works on them.
//   - One thread at a time runs a worker: its carrier, which holds the carrier lock. "Owner" means
//     the carrier; thieves and rescuers are other workers of the same runtime.
//   - The workers 0 to started - 1 exist, and live until the runtime is freed.
// The notes at the fields are explained in >>terms. A field without a note is a lock, or a struct
// with rules of its own in its section, or belongs to the owner if it stands below that heading.
// volt__lock_local and volt__unlock_local are called by the owner, the other functions by any
// thread.
typedef struct volt__watchdog {
    uint32_t is_armed; // any, rmw [W2]
    int fd;            // once: the timerfd; -1: no watchdog
    int64_t period;    // once: ns from arming to expiry
} volt__watchdog;
#if VOLT_TRACE
// The latest events of one worker, or of all threads that are not workers; read by any thread.
typedef struct volt__trace {
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) uint32_t lock;
    uint64_t n;                         // under lock: events recorded so far
    int64_t poll_since;                 // under lock: start of the current poll; 0: none
    const char *poll_site;              // under lock: await at which that poll resumed, or spawn
    volt_latency_histograms histograms; // under lock
    volt_trace_event event[VOLT_TRACE_CAP]; // under lock; texts as in the header of the task
} volt__trace;
VOLT__SASSERT((VOLT_TRACE_CAP & (VOLT_TRACE_CAP - 1)) == 0, "VOLT_TRACE_CAP: a power of two");
#endif
// See >>worker for the order in which a worker serves its queues, and >>schedule for which worker
// serves which queue.
struct volt__worker {
    // owner ---------------------------------------------------------------------------------------
    volt_cx cx;
    volt_rt *rt;
    uint32_t index;
    volt__random random;
    // polls until inject_due, event_due or quota runs out: now, and at the last settling
    uint32_t countdown, countdown_from;
    // polls until the queues behind the ring (injector, inbox, overflow queue) are due, and until
    // the next event poll is, as of the last settling; the intervals from which both restart
    uint32_t inject_due, inject_every, event_due, event_every;
    uint32_t inject_batch;   // most tasks fetched into the ring at once; falls if it overflows
    uint32_t last_source;    // the queue behind the ring that was tried last, when they were due
    uint32_t lifo_bypass_at; // `countdown` at the last push that bypassed the LIFO slot
    uint64_t overflow_ms;    // `ms` when the overflow queue was last seen empty, or last aged
    uint32_t wake_at;        // backlog (ring and LIFO slot) at which another worker is woken
    // image of wait_, budget_, cancel_level_ and shield_depth_ in cx, as most polls start with them
    uint64_t fresh_cx;
    uint32_t lifo_run;       // consecutive polls from the LIFO slot
    uint32_t polls_since;    // polls since last_event_poll, or since the last sleep
    uintptr_t completed_then, spawned_then; // `completed` and `spawned` at last_event_poll
    uint32_t trial_at;      // polls of intervals that could be a trial: see volt__tasks_are_short
    uint8_t is_solo;        // the only worker: no other thread takes from its ring and LIFO slot
    uint8_t is_searching;   // is counted in idle.searching
    uint8_t has_slept;      // has slept, or its thread has just started, and no poll came since
    uint8_t needs_watchdog; // must arm the watchdog before its next poll
    uint8_t is_guest;       // carried by the holder of guest_lock
    uint8_t guest_no_block; // guest: leaves the step instead of blocking in epoll_wait
    uint8_t guest_parked;   // guest: parked, while its thread is in the application's loop
    uint8_t handoff_wanted; // another thread waited for the carrier lock at the last check
    uint8_t is_own_thread;  // carried by its own thread, the only one that observes drain_deadline
    uint32_t quota;         // guest: polls left in this step; others: 0
    uint32_t is_closing;    // has seen the shutdown: its spawns fail, its polls start cancelled
    int64_t last_event_poll, avg_ns; // time of the last event poll; average ns per poll
    int64_t busy_since;              // start of the time that is not yet in stats.busy_ns
    uint64_t ms;                     // last_event_poll in ms since the epoch
    // when the carrier stops waiting for the shutdown; when it may try again to start a worker
    int64_t drain_deadline, start_retry;
    uint32_t housekeep_due;          // calls of volt__maintain until the next volt__housekeep
    uint64_t trim_ms;                // `ms` at which unused memory is next returned
    volt_counters stats;
    uintptr_t spawned, completed; // W owner, R any [S2]: never decrease; modulo a word
    // owner and others ----------------------------------------------------------------------------
    volt__ring ring;
    // The owner stores; it may replace NULL without local_lock. Under local_lock the owner and a
    // rescuing worker take the task [Q4].
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) volt__task *lifo;
    volt__biased local_lock; // guards lifo and the tasks that the owner has claimed in its ring
    uint32_t event_polls;    // W owner, R any: number of event polls
    // carrier lock [H1]: tickets given out (any, rmw); the ticket served (futex word, W carrier)
    uint32_t carrier_ticket, carrier_serving;
    uint32_t is_blocked;     // W owner, R any (hint): blocks in place; no task is placed here
    volt__injector inbox;    // with .placement: any thread pushes, any worker pops [Q3]
    volt__overflow overflow; // the owner pushes, any worker pops [Q3]
#if VOLT_TRACE
    volt__trace trace;
#endif
    // W scanning workers, usually one at a time: event_polls at the last watchdog scan
    VOLT__ALIGN(VOLT__CACHE_LINE) uint32_t event_polls_seen;
    volt__heap heap;
    volt__remote_batch remote_batch; // owner
    volt__wheel wheel;
    volt__reactor reactor;
    uint32_t stats_lock;
    volt_counters published; // under stats_lock
#ifndef VOLT_SINGLE_THREAD
    pthread_t thread;   // once: with has_thread
#endif
    uint8_t has_thread; // once: has a thread of the runtime, which a shutdown joins
};

#define VOLT__OUTSIDE_HEAPS 4
enum { VOLT__PIPES = 8, VOLT__BIG_PIPES = 16 };
typedef struct volt__pipe {
    int fd[2];
    uint8_t is_big;
} volt__pipe;
struct volt_rt {
    volt_config cfg; // once: effective values
    int64_t epoch;   // once: time of tick 0
    uint32_t *fork_word; // once: *fork_word is 0 in a forked child; NULL: compare pid
    int32_t pid;         // once: process that created the runtime
#ifdef VOLT_SINGLE_THREAD
    long thread; // once: thread that created the runtime
#endif
    uint32_t n_workers;     // once: number of workers configured
    volt__worker **workers; // [i] once, before started > i
    // read by all threads, rarely written
    VOLT__ALIGN(VOLT__CACHE_LINE_PAIR) uint32_t started; // W under start_lock, R any [R1]
    uint32_t is_closed;                                  // W once, R any [S1]
    uint32_t is_stopped;                                 // futex word; W once, R any [S1]
    volt__watchdog watchdog;
    uint32_t start_lock;
    uint32_t is_starting, start_wanted, starts_closed; // under start_lock
    uint32_t acks;        // any, rmw [S1]: workers that have yet to acknowledge is_closed
    uint32_t join_state;  // futex word; any, rmw [S1]: 1: a thread joins the workers; 2: joined
    uint32_t guest_lock;  // the lock whose holder carries the guest
    uint32_t pins;        // futex word; any, rmw [S1]: see volt__rt_pin
    uint32_t n_placements; // any, rmw: placements so far
    uint32_t n_blocked;    // any, rmw [H3]: workers that block in place without a handoff
    // W worker that completes the root task; R volt_run, after is_stopped [S1]
    int64_t root_result;
    volt__idle idle;
    volt__injector injector;
    uintptr_t n_destroyed_outside; // under injector.lock: tasks ended by volt_task_destroy
    volt__heap outside_heaps[VOLT__OUTSIDE_HEAPS]; // for spawns by threads that are not workers
    volt__slabs slabs;
    volt__fds fds;
#ifndef VOLT_SINGLE_THREAD
    volt__pool pool;
#endif
#if VOLT_TRACE
    volt__trace outside_trace; // wake-ups and spawns by threads that are not workers
#endif
    uint32_t names_lock;
    struct volt__query *queries; // under names_lock: host lookups in progress
    uint32_t pipes_lock, n_pipes;
    uint32_t n_big_pipes;          // W under pipes_lock, R any (hint): those in use included
    volt__pipe pipes[VOLT__PIPES]; // under pipes_lock: empty pipes, for the next copy
};

// If VOLT_MAX_WORKERS is 1, this constant lets the compiler drop all code for several workers.
#define VOLT__ONE_WORKER (VOLT_MAX_WORKERS == 1)
static inline int volt__is_solo(const volt__worker *w) { return VOLT__ONE_WORKER || w->is_solo; }
// local_lock, which guards the LIFO slot and the claimed tasks. A solo worker needs no lock.
static inline void volt__lock_local(volt__worker *w) {
    if (!volt__is_solo(w)) volt__biased_lock(&w->local_lock);
}
static inline void volt__unlock_local(volt__worker *w) {
    if (!volt__is_solo(w)) volt__biased_unlock(&w->local_lock);
}
static inline uint32_t volt__started(const volt_rt *rt) {
    return volt__load_acq(&rt->started); // [R1] with worker start
}
static int volt__is_forked_child(const volt_rt *rt) {
    return rt->fork_word ? *rt->fork_word == 0 : rt->pid != VOLT_GETPID();
}
#if defined(VOLT_SINGLE_THREAD) && VOLT_DEBUG
static void volt__check_thread(const volt_rt *rt) {
    VOLT__EXPECT(volt__is_forked_child(rt) || rt->thread == VOLT_SYS(syscall, SYS_gettid),
                 "VOLT_SINGLE_THREAD: a runtime belongs to the thread that made it");
}
#else
#  define volt__check_thread(rt_) ((void)0)
#endif

// ---- time since the epoch: ns, ticks of the timer wheels, ms

static inline uint64_t volt__since_epoch(const volt_rt *rt, volt_time now) {
    return now <= rt->epoch ? 0 : (uint64_t)(now - rt->epoch);
}
static uint64_t volt__tick_floor(const volt_rt *rt, volt_time now) {
    return volt__since_epoch(rt, now) / VOLT_TICK_NS;
}
// Deadlines are rounded up, so that no timer fires early.
static uint64_t volt__tick_ceil(const volt_rt *rt, volt_time deadline) {
    uint64_t d = volt__since_epoch(rt, deadline);
    return d / VOLT_TICK_NS + (d % VOLT_TICK_NS != 0);
}
// For times that only serve to compute an age, such as the start of a wait.
static uint64_t volt__ms_floor(const volt_rt *rt, volt_time now) {
    return volt__since_epoch(rt, now) / 1000000;
}

//==================================================================================================
// >>log  log lines, and misuse that names the line of the task that is being polled
//==================================================================================================
// Log lines for the function in .log, and reports of misuse, which stop the program. Both may be
// made by any thread. The function in .log is user code, so the caller of a log function holds no
// lock.

// Logs "site: text: number", followed by `unit`. Without a site (NULL) the line begins with the
// text; without a unit (NULL) it ends with the text. A site is cut at its tab.
static void volt__log_number(const volt_rt *rt, volt_log_item item, const char *site,
                             uint64_t number, const char *unit) {
#define VOLT__LOG_TEXT(name_, text_) text_,
    static const char *const texts[] = { VOLT__LOG_ITEMS(VOLT__LOG_TEXT) };
#undef VOLT__LOG_TEXT
    char text[256], digits[24];
    size_t n = 0, d = sizeof digits - 1;
    if (!rt->cfg.log.fn) return;
    digits[d] = 0;
    do digits[--d] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    const char *parts[6] = { site ? site : "",       site ? ": " : "", texts[item],
                             unit ? ": " : "", unit ? digits + d : "", unit ? unit : "" };
    for (int i = 0; i < 6; i++)
        for (const char *c = parts[i]; *c && *c != '\t' && n < sizeof text - 1; c++) text[n++] = *c;
    text[n] = 0;
    rt->cfg.log.fn(rt->cfg.log.user, (int)item, text);
}
static void volt__log(const volt_rt *rt, volt_log_item item, const char *site) {
    volt__log_number(rt, item, site, 0, NULL);
}
// Called when a thread could not be started; rc: -errno. Logs the number of the error, since its
// text would add the table of volt_strerror to every program.
static void volt__log_no_thread(const volt_rt *rt, int rc) {
    volt__log_number(rt, VOLT_LOG_THREAD_START, NULL, (uint64_t)-rc, " (errno)");
}
// Writes the line by one call, so that lines of several threads do not mix. If stderr is a pipe
// whose reader has gone, the SIGPIPE of this write is discarded.
VOLT_API void volt_log_stderr(void *user, int item, const char *text) {
    char line[272] = "volt: ";
    size_t n = 6;
    (void)user, (void)item;
    for (; *text && n < sizeof line - 1; text++) line[n++] = *text;
    line[n++] = '\n';
    volt__sigpipe held;
    volt__sys_sigpipe_block(&held);
    int is_broken = VOLT_SYS(write, STDERR_FILENO, line, n) < 0 && errno == EPIPE;
    volt__sys_sigpipe_unblock(&held, is_broken);
}

// ---- misuse in the polled task

// In debug builds names the VOLT_BEGIN or VOLT_AWAIT that this poll has reached last; in others the
// line at which the task last waited, or was spawned.
VOLT_API void volt__misuse_cx(const volt_cx *cx, const char *what) {
    volt__misuse(cx->at_ ? cx->at_ : volt__load_rlx(&cx->task_->wait_site), what); // rlx: our own
}
// The same for functions that have no volt_cx, because plain threads call them as well.
static __attribute__((noreturn, cold)) void volt__misuse_current(const char *what) {
    volt__worker *w = VOLT_TLS_GET();
    if (w && w->cx.task_) volt__misuse_cx(&w->cx, what);
    volt__misuse("outside of tasks", what);
}

//==================================================================================================
// >>trace  what happened: probes, rings, histograms, the tracer
//==================================================================================================
// The hooks that the scheduler calls at each wake-up, poll, park and steal. With VOLT_USDT a hook
// fires a probe; with VOLT_TRACE it records an event in a trace and passes it to .tracer. Without
// both it compiles to nothing.
//   - Each worker has a trace, which its carrier writes; all other threads share rt->outside_trace.
//     A trace is an array of the last VOLT_TRACE_CAP events and two histograms, under its own lock.
//   - .tracer is user code, so the caller of a hook holds no lock but the guest_lock of a guest.
//   - w is the worker that the calling thread carries; NULL: it carries no worker of rt.
// Any thread may call the hooks of wake-ups, the carrier of w the others.
#if VOLT_TRACE

// t: the task that the event is about, or NULL.
static void volt__trace_event_init(volt_trace_event *e, volt_trace_kind kind, uint32_t worker,
                                   const volt__task *t) {
    memset(e, 0, sizeof *e);
    e->at = VOLT_NOW_NS();
    e->kind = kind;
    e->worker = worker;
    if (!t) return;
    volt__slab *s = volt__slab_of(t);
    uintptr_t offset = (uintptr_t)t - (uintptr_t)s - VOLT__SLAB_HEAD;
    e->name = volt__load_rlx(&t->spawn_site); // rlx: the address of a literal
    e->site = volt__load_rlx(&t->wait_site);  // rlx: the address of a literal
    uint32_t at = (uint32_t)(offset / s->slot_size);
    // as in a dump: serial number of the slab, and index of the slot in carve order
    e->task = (uint64_t)s->serial << 32 | volt__slab_shuffle(s, at);
}
// Turns the texts of a task header into the public ones. `name` becomes the part behind its tab,
// the name of the function. A `site` with a tab, or equal to `name`, is the spawn site, since the
// task has not waited yet: it becomes NULL.
static void volt__trace_event_clean(volt_trace_event *e) {
    const char *tab = e->name ? strchr(e->name, '\t') : NULL;
    if (e->site && (e->site == e->name || strchr(e->site, '\t'))) e->site = NULL;
    if (tab) e->name = tab + 1;
}
// Called under the lock of the trace.
static void volt__trace_append(volt__trace *trace, const volt_trace_event *e) {
    trace->event[trace->n++ & (VOLT_TRACE_CAP - 1)] = *e;
}
static uint32_t volt__histogram_slot(int64_t ns) {
    if (ns <= 0) return 0;
    uint32_t i = (uint32_t)volt__highest_bit((uint64_t)ns) + 1;
    return volt__min32(i, VOLT_HISTOGRAM - 1);
}
// From a wake-up to the next poll, wait_ms holds this stamp: microseconds, shifted left by one, and
// bit 0 set. It wraps after 2^31 us, so the time since a stamp is modulo 35 minutes.
static uint32_t volt__trace_stamp(int64_t at) {
    return (uint32_t)(at / 1000) << 1 | 1;
}
// Returns ns since the stamp.
static int64_t volt__trace_since(uint32_t stamp, int64_t now) {
    return (int64_t)((volt__trace_stamp(now) - stamp) >> 1) * 1000;
}
#endif
// The value of wait_ms while a task waits: a mark of the time at which the wait began, in ms since
// the epoch. The difference of two marks, shifted right by VOLT__WAIT_SHIFT, is in ms. With
// VOLT_TRACE bit 0 of a mark is clear, which tells it from a stamp.
#define VOLT__WAIT_SHIFT (VOLT_TRACE ? 1 : 0)
static uint32_t volt__wait_mark(uint64_t ms) {
    return (uint32_t)(ms << VOLT__WAIT_SHIFT);
}
#if VOLT_USDT && defined(__clang__) // clang warns of the macros in sys/sdt.h
#  define VOLT__PROBE(n_, ...)                                                     \
      _Pragma("clang diagnostic push")                                             \
          _Pragma("clang diagnostic ignored \"-Wgnu-zero-variadic-macro-arguments\"") \
              DTRACE_PROBE##n_(volt, __VA_ARGS__) _Pragma("clang diagnostic pop")
#elif VOLT_USDT
#  define VOLT__PROBE(n_, ...) DTRACE_PROBE##n_(volt, __VA_ARGS__)
#else
#  define VOLT__PROBE(n_, ...) ((void)0)
#endif

// ---- hooks

#if VOLT_TRACE
static volt__trace *volt__trace_of(volt_rt *rt, volt__worker *w) {
    return w ? &w->trace : &rt->outside_trace;
}
static uint32_t volt__trace_index(const volt__worker *w) { return w ? w->index : UINT32_MAX; }
static void volt__trace_emit(const volt_rt *rt, const volt_trace_event *as_recorded) {
    if (!rt->cfg.tracer.fn) return;
    volt_trace_event e = *as_recorded;
    volt__trace_event_clean(&e);
    rt->cfg.tracer.fn(rt->cfg.tracer.user, &e);
}
static void volt__trace_record(volt_rt *rt, volt__worker *w, const volt_trace_event *e) {
    volt__trace *trace = volt__trace_of(rt, w);
    volt__lock(&trace->lock);
    volt__trace_append(trace, e);
    volt__unlock(&trace->lock);
    volt__trace_emit(rt, e);
}
#endif
// Called by the winner of the NOTIFIED bit, before it enqueues t: the next poll reads the stamp.
static inline void volt__trace_wake(volt_rt *rt, volt__worker *w, volt__task *t) {
    VOLT__PROBE(2, wake, t, w);
#if VOLT_TRACE
    volt_trace_event e;
    volt__trace_event_init(&e, VOLT_TRACE_WAKE, volt__trace_index(w), t);
    e.n = volt__trace_stamp(e.at);
    volt__store_rlx(&t->wait_ms, e.n); // rlx: handed over with the task by its queue
    volt__trace_record(rt, w, &e);
#else
    (void)rt, (void)w, (void)t;
#endif
}
static inline void volt__trace_wakes(volt_rt *rt, volt__worker *w, const volt__chain *c) {
    if (!VOLT_TRACE && !VOLT_USDT) return;
    for (volt__task *t = c->head; t; t = t->next) volt__trace_wake(rt, w, t);
}
// Returns the start of the poll, for volt__trace_poll_end; 0 without VOLT_TRACE.
static inline int64_t volt__trace_poll_begin(volt__worker *w, volt__task *t) {
    VOLT__PROBE(4, poll, t, w, t->spawn_site, t->wait_site);
#if VOLT_TRACE
    volt_trace_event e;
    volt__trace *trace = &w->trace;
    volt__trace_event_init(&e, VOLT_TRACE_POLL, w->index, t);
    e.n = volt__load_rlx(&t->wait_ms); // rlx: handed over with the task by its queue
    volt__lock(&trace->lock);
    volt__trace_append(trace, &e);
    trace->poll_since = e.at;
    trace->poll_site = e.site;
    trace->histograms.wait[volt__histogram_slot(volt__trace_since(e.n, e.at))]++;
    volt__unlock(&trace->lock);
    volt__trace_emit(w->rt, &e);
    return e.at;
#else
    (void)w, (void)t;
    return 0;
#endif
}
// Called while the worker still owns the task, which may be freed or run elsewhere afterwards. Also
// logs a poll that took longer than .slow_poll, by the await from which it resumed. For .tracer a
// PENDING event names the await that has suspended.
static inline void volt__trace_poll_end(volt__worker *w, volt__task *t, int is_pending,
                                        int64_t since) {
    VOLT__PROBE(3, polled, t, w, is_pending);
#if VOLT_TRACE
    volt_trace_event e;
    volt__trace *trace = &w->trace;
    volt__trace_event_init(&e, is_pending ? VOLT_TRACE_PENDING : VOLT_TRACE_END, w->index, t);
    volt__lock(&trace->lock);
    volt__trace_append(trace, &e);
    trace->poll_since = 0;
    trace->histograms.poll[volt__histogram_slot(e.at - since)]++;
    volt__unlock(&trace->lock);
    if (w->rt->cfg.slow_poll > 0 && e.at - since > w->rt->cfg.slow_poll)
        volt__log_number(w->rt, VOLT_LOG_SLOW_POLL, e.site, (uint64_t)(e.at - since) / 1000, " us");
    if (is_pending && w->cx.frame_) e.site = w->cx.site_;
    volt__trace_emit(w->rt, &e);
#else
    (void)w, (void)t, (void)is_pending, (void)since;
#endif
}
static inline void volt__trace_park(volt__worker *w, volt_trace_kind kind) {
    if (kind == VOLT_TRACE_PARK) {
        VOLT__PROBE(1, park, w);
    } else {
        VOLT__PROBE(1, unpark, w);
    }
#if VOLT_TRACE
    volt_trace_event e;
    volt__trace_event_init(&e, kind, w->index, NULL);
    volt__trace_record(w->rt, w, &e);
#endif
    (void)w;
}
static inline void volt__trace_steal(volt__worker *w, uint32_t n) {
    VOLT__PROBE(2, steal, w, n);
#if VOLT_TRACE
    volt_trace_event e;
    volt__trace_event_init(&e, VOLT_TRACE_STEAL, w->index, NULL);
    e.n = n;
    volt__trace_record(w->rt, w, &e);
#endif
    (void)w, (void)n;
}

//==================================================================================================
// >>schedule  where a woken task goes: placement and the queues of a worker
//==================================================================================================
// Scheduling of runnable tasks: each one is put into a queue, and a worker that can serve the queue
// is woken if necessary.
//   - The caller of a push has won the NOTIFIED bit of the task, and holds no lock of the runtime
//     but the guest_lock of a guest.
//   - Work that other workers may serve is published first. Then one parked worker is claimed and
//     unparked, unless a worker is searching already: that one finds the work [I1].
//   - Under "queues of a worker", functions with an argument `w` are called by the carrier of w.
//     volt__inject_outside is called by threads that are not workers of rt, and all others by any
//     thread.
// The way of a task from the event that makes it runnable, through a queue, to a worker:
//
//                                                      served while its worker is
//   event                              queue           awake      parked     stuck
//   fd ready, timer due                reactor, wheel  in turn    at once    watchdog
//   event or timer served; yield;      ring            in turn    -          thieves, watchdog
//     several tasks woken at once
//   woken during its own poll          ring            in turn    -          thieves, watchdog
//   other wake-up or spawn by a poll   LIFO slot       next       -          watchdog
//   task replaced in the LIFO slot,    ring            in turn    -          thieves, watchdog
//     or pushed after VOLT_LIFO_MAX
//     polls from the slot
//   ring full: pushed because of a     overflow queue  in turn    -          thieves, watchdog
//     second or later spawn of a poll
//   ring full: any other task, with    injector        in turn    claim      any other worker
//     the newer half of the ring
//   wake-up or spawn from outside,     injector        in turn    claim      any other worker
//     and each task at a shutdown
//   the same, with .placement          inbox           in turn    claim      thieves, watchdog
//
//   in turn   In the order given in >>worker. The injector, an inbox and the overflow queue are due
//             when inject_due has run out, the reactor and the wheel when event_due has.
//   at once   The epoll_wait of the worker returns.
//   next      After the current poll, unless due queues or events come first (>>worker).
//   claim     The pusher claims and unparks a parked worker: for an inbox its owner if possible,
//             but any worker may serve it. If a worker is searching, that one finds the task.
//   -         Impossible: a worker parks only when these queues are empty.
//   thieves   Searching workers steal the tasks, except those that the owner has claimed and those
//             that the steal floor protects.
//   watchdog  The scanning worker takes the tasks, the first of them within two periods.
// Thieves and watchdog need a worker that is not stuck. With one worker, or while all of them are
// stuck, runnable tasks wait until a poll returns.
//
// ---- departures from the published design that this scheduler started from
// It is that of blitz-io's scheduler documents, which follow Tokio's.
// Each row names the test or benchmark that shows the reason. N is the number of workers.
//   subject       published        here                 reason                          shown by
//   parking       futex, 10 ms     epoll, no limit      silent when idle, fds at once   bench M4
//   inject due    8..255 ticks     2..255 polls         8 polls of 150 us exceed 1 ms   test_sched
//   tick          per 128 polls    per poll             the interval counts polls       test_sched
//   events        per 128 polls    255, or 100 us       per 61: a third of all CPU time bench S8
//   average       per batch        weighted, clipped    one outlier dominated it        test_budget
//   budget        128 polls        128 leaves           must bound a single task        test_task
//   injector      when idle        first, when due      two busy tasks starved it       test_sched
//   its share     4..64, private   len/N + 1, ring      a private buffer hides tasks    test_queues
//   LIFO push     any thread       owner only           its flag cannot close a race    test_sched
//   ring head     two u16          index, distance      u16 wraps while a thief stalls  test_queues
//   ring pop      a CAS for each   up to 8 by one CAS   a third of the RMWs of a task   make model
//   steal         may be given up  always released      lost slots never come back      test_queues
//   ... of short  as of others     short tasks stay     22 ns a task, not 105, if N = 2 test_budget
//   overflow      the oldest half  the newest half      the oldest waited longest       test_queues
//   ... of many   to the injector  own queue, newest    a tree of tasks, depth first    test_sched
//   idle bitmap   64 workers       any number           machines have more CPUs         test_sched
//   timers        on worker 0      on each worker       a long poll froze all timers    test_rescue
//   timer tick    1 ms             1/16 ms              0.2 ms late instead of 1.1      bench T4
//   stuck worker  undetected       watchdog, 750 us     its work moves within 2 ms      test_rescue
//   queue limit   65536            none                 a wake-up must not fail         test_sched
//   task word     always by RMW    plain while private  no other thread can reach it    make model

// Returns the worker of rt that the calling thread carries, or NULL.
static inline volt__worker *volt__current_worker(volt_rt *rt) {
    volt__worker *w = VOLT_TLS_GET();
    return w && w->rt == rt ? w : NULL;
}

// Called after work has been published. Wakes a parked worker, preferably `first`, unless a worker
// is searching.
static void volt__wake_worker_preferring(volt_rt *rt, int first) {
    int i = volt__idle_claim(&rt->idle, first);
    if (i >= 0) volt__reactor_unpark(&rt->workers[i]->reactor);
}
static void volt__wake_worker(volt_rt *rt) { volt__wake_worker_preferring(rt, VOLT__ANY_WORKER); }
// Unparks all workers. One that is awake finds its eventfd set at its next event poll.
static void volt__unpark_all(volt_rt *rt) {
    for (uint32_t i = 0, n = volt__started(rt); i < n; i++)
        volt__reactor_unpark(&rt->workers[i]->reactor);
}
static void volt__inject(volt_rt *rt, volt__chain *c) {
    volt__injector_push(&rt->injector, c);
    volt__wake_worker(rt);
}

// ---- pins of a runtime
// A thread that is not a worker of rt pins it during a call: the task that the call enqueues, or
// the reference that it releases, may be the last thing that keeps the runtime alive. So the thread
// pins the runtime before it lets go of that thing.
// The word w is twice the number of pins, plus 1 from the first teardown on:
//   event     to     done by                                 and then
//   pin       w + 2  thread that holds a reference, or rt    enqueues, releases, waits
//   unpin     w - 2  the same thread. LAST TOUCH             if this makes it 1: wakes the teardown
//   teardown  w | 1  volt_run, volt_destroy: workers joined  waits until w is 1, then checks
// The teardown checks whether any task is still referenced; if so it fails with -EBUSY. If not, no
// thread can pin again, but one may still hold the pin under which it released the last reference.
// So the teardown waits for 1 a second time before it frees the runtime.
static void volt__rt_pin(volt_rt *rt) {
    volt__check_thread(rt);
    volt__add_acq_rel(&rt->pins, 2); // [S1] with teardown
}
static void volt__rt_unpin(volt_rt *rt) {
    uint32_t *pins = &rt->pins;
    uint32_t old = volt__sub_acq_rel(pins, 2); // [S1] with teardown. LAST TOUCH of *rt
    VOLT_ASSERT(old >= 2);
    if (old == 3) VOLT_FUTEX_WAKE(pins, 1);
}

// ---- placement of tasks that come from outside

static inline int volt__lifo_is_full(const volt__worker *w) {
    return volt__load_rlx(&w->lifo) != NULL; // rlx: hint; other threads only take
}
static inline int volt__has_inboxes(const volt_rt *rt) {
    return !VOLT__ONE_WORKER && rt->cfg.placement != VOLT_PLACE_SHARED;
}
// The number of tasks in the queues of a worker. Computed from the indices and lengths of the
// queues, so that pushes and pops need not maintain a counter. Exact while no task moves.
static uint32_t volt__queued_at(const volt__worker *w) {
    uint32_t claimed = volt__load_acq(&w->ring.claimed); // [Q6] next and head are not older than it
    // rlx: hint
    uint32_t n_claimed = volt__ring_gap(volt__load_rlx(&w->ring.next), claimed);
    if (n_claimed > VOLT_CLAIM_MAX) n_claimed = 0; // `next` is of a later claim: the gap wrapped
    uintptr_t head = volt__load_acq(&w->ring.head); // [Q2] the tail below is not older
    uint32_t tail = volt__load_rlx(&w->ring.tail); // rlx: hint
    uintptr_t n_inbox = volt__load_rlx(&w->inbox.len); // rlx: hint
    return n_claimed + volt__ring_gap(volt__head_index(head), tail) +
           volt__load_rlx(&w->overflow.len) + // rlx: hint
           (uint32_t)(n_inbox + (uintptr_t)volt__lifo_is_full(w));
}
// Returns the number of queued tasks, plus 1 if the worker is awake; UINT32_MAX if it is blocked.
static uint32_t volt__worker_load(const volt_rt *rt, uint32_t i) {
    const volt__worker *w = rt->workers[i];
    if (volt__load_rlx(&w->is_blocked)) return UINT32_MAX; // rlx: hint
    return volt__queued_at(w) + !volt__idle_is_parked(&rt->idle, i);
}
// Returns the least loaded of the n workers from `first` on, or VOLT__ANY_WORKER if all are
// blocked. Among equals a parked worker wins, then the first one counted from `turn`, so that
// successive calls alternate.
static int volt__least_loaded(const volt_rt *rt, uint32_t first, uint32_t n, uint32_t turn) {
    uint64_t least = UINT64_MAX;
    int best = VOLT__ANY_WORKER;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = first + (turn + k) % n, load = volt__worker_load(rt, i);
        uint64_t rank = (uint64_t)load * 2 + !volt__idle_is_parked(&rt->idle, i);
        if (load == UINT32_MAX || rank >= least) continue;
        least = rank;
        best = (int)i;
    }
    return best;
}
// Returns the less loaded of two workers chosen at random; if both are blocked, the least loaded of
// all. The choice follows from the seed and `turn`, so that threads share no generator.
static int volt__less_loaded_of_two(const volt_rt *rt, uint32_t first, uint32_t n, uint32_t turn) {
    volt__random r;
    volt__random_seed(&r, rt->cfg.seed, turn);
    uint32_t i = volt__random_below(&r, n), j = n > 1 ? volt__random_below(&r, n - 1) : 0;
    if (j >= i && n > 1) j++;
    uint32_t at_i = volt__worker_load(rt, first + i), at_j = volt__worker_load(rt, first + j);
    if (at_i == UINT32_MAX && at_j == UINT32_MAX) return volt__least_loaded(rt, first, n, turn);
    return (int)(first + (at_i <= at_j ? i : j));
}
// Returns the worker to place a task at, or VOLT__ANY_WORKER for the injector. Prefers a parked
// worker without tasks. Never a guest, which runs only when the application steps it.
static int volt__place(volt_rt *rt) {
    uint32_t started = volt__started(rt), first = rt->cfg.is_guest;
    if (!volt__has_inboxes(rt) || started - first < 1) return VOLT__ANY_WORKER;
    // rlx: if a shutdown begins after this load, the closed inbox itself refuses the spawn
    if (volt__load_rlx(&rt->is_closed)) return VOLT__ANY_WORKER;
    uint32_t n = started - first, turn = volt__add_rlx(&rt->n_placements, 1); // rlx: a counter
    int idle = volt__idle_find(&rt->idle, first + turn % n);
    // this search wraps around and may have stopped at the guest, ahead of other parked workers
    if (idle < (int)first && idle >= 0) idle = volt__idle_find(&rt->idle, first);
    // a worker that is being started may park before `started` includes it
    if (idle >= (int)first && idle < (int)started && volt__worker_load(rt, (uint32_t)idle) == 0)
        return idle;
    return rt->cfg.placement == VOLT_PLACE_TWO ? volt__less_loaded_of_two(rt, first, n, turn)
                                               : volt__least_loaded(rt, first, n, turn);
}
static inline volt__injector *volt__placement_queue(volt_rt *rt, int place) {
    return place == VOLT__ANY_WORKER ? &rt->injector : &rt->workers[place]->inbox;
}
static void volt__place_all(volt_rt *rt, volt__chain *c) {
    volt__task *t;
    while ((t = volt__chain_pop(c)) != NULL) {
        int place = volt__place(rt);
        volt__chain one;
        volt__chain_init(&one);
        volt__chain_push(&one, t);
        volt__injector_push(volt__placement_queue(rt, place), &one);
        volt__wake_worker_preferring(rt, place);
    }
}
// Enqueues the tasks of *c for a thread that is not a worker of rt. Does nothing in a forked child,
// which shares the eventfds of its parent's workers.
static void volt__inject_outside(volt_rt *rt, volt__chain *c) {
    if (VOLT__UNLIKELY(volt__is_forked_child(rt))) return;
    volt__rt_pin(rt);
    if (volt__has_inboxes(rt)) volt__place_all(rt, c);
    else volt__inject(rt, c);
    volt__rt_unpin(rt);
}

// ---- queues of a worker

// The number of tasks in the ring and the LIFO slot, without the claimed ones.
static inline uint32_t volt__backlog(const volt__worker *w) {
    return volt__ring_len(&w->ring) + (uint32_t)volt__lifo_is_full(w);
}
static inline int volt__refuses_steal(const volt__worker *v) {
    return volt__load_rlx(&v->ring.steal_floor) == VOLT__NO_STEAL; // rlx: only compared
}
static inline int volt__overflow_is_stealable(const volt__worker *v) {
    return !volt__refuses_steal(v) && !volt__overflow_is_empty(&v->overflow);
}
// Pushes t while the ring is full. The newer half of the ring, and t behind it, go to the overflow
// queue if t is one of several spawns of a poll, else to the injector, a FIFO for all workers. If a
// thief is just making room in the ring, t goes alone. No worker is woken for an overflow queue
// that must not be stolen from.
static __attribute__((noinline)) void volt__push_overflow(volt__worker *w, volt__task *t,
                                                          int is_of_several) {
    volt__chain c;
    volt__chain_init(&c);
    volt__lock_local(w);
    volt__ring_overflow(&w->ring, &c);
    volt__unlock_local(w);
    volt__chain_push(&c, t);
    w->stats.overflows++;
    w->inject_batch = VOLT_INJECT_BATCH_MIN;
    if (is_of_several) volt__overflow_push(&w->overflow, &c);
    else volt__injector_push(&w->rt->injector, &c);
    if (!is_of_several || !volt__refuses_steal(w)) volt__wake_worker(w->rt);
}
// Pushes t behind the tasks of the ring. is_of_several: t is one of several spawns of a poll.
static inline void volt__push_tail(volt__worker *w, volt__task *t, int is_of_several) {
    VOLT_ASSERT(volt__load_rlx(&t->word) & VOLT__NOTIFIED); // rlx: the pusher owns this bit
    if (VOLT__UNLIKELY(!volt__ring_push(&w->ring, t))) {
        volt__push_overflow(w, t, is_of_several);
    } else if (!volt__is_solo(w) && volt__backlog(w) - w->wake_at <= 1) {
        // Wakes one worker when the backlog reaches wake_at, not at each push above it: true at
        // wake_at, and at one more, because a push into the LIFO slot does not check. Any other
        // difference is more than 1, a negative one since it wraps, as it does for VOLT__NO_STEAL.
        volt__wake_worker(w->rt);
    }
}
static inline void volt__push_ring(volt__worker *w, volt__task *t) { volt__push_tail(w, t, 0); }
static inline volt__task *volt__lifo_swap(volt__worker *w, volt__task *t) {
    volt__lock_local(w);
    volt__task *old = volt__load_rlx(&w->lifo); // rlx: under the lock
    volt__store_rlx(&w->lifo, t);               // rlx: the lock orders it
    volt__unlock_local(w);
    return old;
}
static inline volt__task *volt__lifo_take(volt__worker *w) { return volt__lifo_swap(w, NULL); }
// Pushes a task that the current poll woke or spawned: t goes into the LIFO slot, and the task that
// was there goes into the ring. If the last VOLT_LIFO_MAX polls came from the slot, t goes into the
// ring. A push into an empty slot wakes no worker: this one takes the task after the current poll,
// and a wake-up would cost more than it gains. The slot is mostly empty when a poll begins, so a
// spawn that finds it occupied counts as one of several of this poll.
static inline void volt__push_runnext(volt__worker *w, volt__task *t, int is_spawn) {
    volt__task *old;
    VOLT_ASSERT(volt__load_rlx(&t->word) & VOLT__NOTIFIED); // rlx: the pusher owns this bit
    if (w->lifo_run >= VOLT_LIFO_MAX) {
        int is_second = w->lifo_bypass_at == w->countdown; // the second one of this poll
        w->lifo_bypass_at = w->countdown;
        volt__push_tail(w, t, is_spawn && is_second);
        return;
    }
    old = volt__load_rlx(&w->lifo); // rlx: other threads only take
    if (old && !volt__is_solo(w)) old = volt__lifo_swap(w, t);
    // no lock: the worker is solo, or the slot is empty and only its owner fills it
    else volt__store_rel(&w->lifo, t); // [Q4] with the watchdog
    if (old) volt__push_tail(w, old, is_spawn); // not the first one of this poll
}
static inline void volt__push_lifo(volt__worker *w, volt__task *t) { volt__push_runnext(w, t, 0); }
// Moves the tasks of *c into the ring, in order, and those that do not fit into the injector. Wakes
// a worker if the tasks are enough for two.
static void volt__push_batch(volt__worker *w, volt__chain *c) {
    volt__task *t;
    if (!c->head) return;
    while (volt__ring_room(&w->ring) > 0 && (t = volt__chain_pop(c)) != NULL)
        volt__ring_push(&w->ring, t);
    if (c->head) volt__inject(w->rt, c);
    else if (!volt__is_solo(w) && volt__ring_len(&w->ring) >= w->wake_at) volt__wake_worker(w->rt);
}
// When the ring overflows, inject_batch becomes small: the tasks that left the ring would come back
// as a large batch and overflow it again. Each batch then adds one.
static inline void volt__grow_batch(volt__worker *w) {
    w->inject_batch += w->inject_batch < VOLT_INJECT_BATCH;
}
// Moves the share of one of n_takers workers from q into the ring. Returns the number of tasks; it
// is 0 if q is empty or the ring is full.
static uint32_t volt__refill_from(volt__worker *w, volt__injector *q, uint32_t n_takers) {
    volt__chain c;
    if (volt__injector_is_empty(q)) return 0;
    volt__chain_init(&c);
    uint32_t room = volt__min32(volt__ring_room(&w->ring), w->inject_batch);
    uint32_t n = volt__injector_pop(q, n_takers, room, &c);
    volt__grow_batch(w);
    volt__push_batch(w, &c);
    return n;
}
// Refills the ring from the inbox, or if that is empty with a share of the injector. Returns the
// number of tasks.
static uint32_t volt__refill(volt__worker *w) {
    volt__injector *q = &w->rt->injector;
    uint32_t n = volt__has_inboxes(w->rt) ? volt__refill_from(w, &w->inbox, 1) : 0;
    w->stats.inbox_tasks += n;
    if (n > 0 || volt__injector_is_empty(q)) return n;
    // `started`, a divisor, is read after a task was seen. The thread of the first worker may run
    // before its starter has set `started` from 0 to 1, but no task can be injected before that.
    n = volt__refill_from(w, q, volt__started(w->rt));
    w->stats.wakes_remote += n;
    return n;
}
// Enqueues one woken task: at the worker that the calling thread carries, if that worker belongs to
// the task's runtime, else in the injector or an inbox.
static void volt__schedule(volt__task *t) {
    volt_rt *rt = volt__slab_of(t)->rt;
    volt__worker *w = volt__current_worker(rt);
    volt__trace_wake(rt, w, t);
    if (w) {
        w->stats.wakes_local++;
        volt__push_lifo(w, t);
    } else {
        volt__chain c;
        volt__chain_init(&c);
        volt__chain_push(&c, t);
        volt__inject_outside(rt, &c);
    }
}
// The same for all tasks that one event woke, which may belong to several runtimes. Several tasks
// go into the ring, not into the LIFO slot.
static void volt__schedule_chain(volt__chain *c) {
    volt__worker *w = VOLT_TLS_GET();
    volt__task *t;
    if (c->len == 1) {
        volt__schedule(volt__chain_pop(c));
        return;
    }
    while ((t = c->head) != NULL) {
        volt_rt *rt = volt__slab_of(t)->rt;
        volt__chain same;
        uint32_t n = 1;
        for (; t->next && volt__slab_of(t->next)->rt == rt; t = t->next) n++;
        volt__chain_split(c, t, n, &same);
        volt__trace_wakes(rt, w && w->rt == rt ? w : NULL, &same);
        if (w && w->rt == rt) {
            w->stats.wakes_local += same.len;
            volt__push_batch(w, &same);
        } else {
            volt__inject_outside(rt, &same);
        }
    }
}

//==================================================================================================
// >>shutdown  shutdown, step by step
//==================================================================================================
// The end of a runtime, begun by volt_shutdown or by the end of the root task of volt_run. All
// tasks are polled cancelled; when all have completed, the workers stop. The steps:
//  1. volt__shutdown_begin, on any thread, sets is_closed and unparks all workers. From here on
//     spawns from outside fail (decided under injector.lock), and no further worker is started.
//  2. Each worker sees is_closed in its next event poll, closes its inbox and acknowledges: its
//     spawns fail, and its polls start cancelled.
//  3. The thread that makes the last acknowledgement sweeps: it wakes every task, running ones too,
//     so that each is polled once more, cancelled.
//  4. A worker that parks and finds that as many tasks have completed as were ever spawned stops
//     all workers. The sums cannot agree too early: they are compared only after the last
//     acknowledgement, when no task is spawned any more and `completed` only grows.
// A spawn that races with step 1 or 2 is either refused or counted before the sums are compared.
// No function is called under a lock of the runtime, except that a guest holds guest_lock, and that
// the sweep calls volt__shutdown_wake under slabs.lock.
// For a worker w, after each step:
//                       before    1 closed     2 w has seen it  3 swept     4 stopped
//   spawn from outside  counted   -ESHUTDOWN   -ESHUTDOWN       -ESHUTDOWN  -ESHUTDOWN
//   spawn on w          counted   counted      -ESHUTDOWN       -ESHUTDOWN  -
//   poll on w           normal    normal       cancelled        cancelled   -
//   wake-up             enqueued  enqueued     enqueued         enqueued    - (all are COMPLETE)
//   start of a worker   yes       refused. If one is in progress, the new worker acknowledges, or
//                                 its starter does if the start fails
//   volt_task_destroy   counted   counted, and unparks all workers: the task may have been the last
//   volt_destroy        -EBUSY    -EBUSY       -EBUSY           -EBUSY      0 once all threads are
//                                                                           joined, no task is held

// Sweeps one slot, under slabs.lock. The reference keeps *t alive during the wake-up. If it was the
// last one, the slot is freed as by another thread, since that takes no lock.
static void volt__shutdown_wake(void *arg, volt__task *t) {
    volt__chain *c = (volt__chain *)arg;
    if (!volt__task_try_retain(t)) return;
    if (volt__task_wake(t)) volt__chain_push(c, t);
    if (!volt__task_release(t)) return;
    volt__heap_free_remote(t);
}
static void volt__shutdown_sweep(volt_rt *rt) {
    volt__chain c;
    volt__chain_init(&c);
    volt__slabs_walk(&rt->slabs, volt__shutdown_wake, &c);
    volt__trace_wakes(rt, volt__current_worker(rt), &c);
    volt__inject(rt, &c);
    volt__unpark_all(rt); // even if no task is left: a worker finds that out when it parks again
}
// Adds n to the number of workers that have yet to acknowledge: n is their count, once, and -1 for
// each acknowledgement. The call that brings the number to 0 sweeps. Acknowledgements that come
// before the count let it wrap below 0, but not reach 0 early.
static void volt__shutdown_ack(volt_rt *rt, uint32_t n) {
    // [S1] all spawns on the acknowledging worker are counted before
    uint32_t left = volt__add_acq_rel(&rt->acks, n) + n;
    if (left == 0) volt__shutdown_sweep(rt);
}
// Step 1, on any thread. A second call does nothing.
static void volt__shutdown_begin(volt_rt *rt) {
    volt__lock(&rt->injector.lock);
    int was_closed = (int)rt->injector.closed;
    rt->injector.closed = 1;
    volt__store_rel(&rt->is_closed, 1); // [S1] with check_shutdown
    volt__unlock(&rt->injector.lock);
    if (was_closed) return;
    // a worker that is being started acknowledges too; if its start fails, its starter does
    volt__lock(&rt->start_lock);
    rt->starts_closed = 1;
    uint32_t n = rt->started + rt->is_starting;
    volt__unlock(&rt->start_lock);
    volt__shutdown_ack(rt, n);
    volt__unpark_all(rt);
}
// Returns the number of spawns from outside, which the injector counts, and the inboxes of the
// first `started` workers. *n_ended receives the number of tasks that volt_task_destroy has ended.
static uint64_t volt__count_outside(volt_rt *rt, uint32_t started, uint64_t *n_ended) {
    uint64_t n = 0;
    for (uint32_t i = 0; volt__has_inboxes(rt) && i < started; i++) {
        volt__injector *inbox = &rt->workers[i]->inbox;
        volt__lock(&inbox->lock);
        n += inbox->spawned;
        volt__unlock(&inbox->lock);
    }
    volt__lock(&rt->injector.lock);
    n += rt->injector.spawned;
    *n_ended = rt->n_destroyed_outside;
    volt__unlock(&rt->injector.lock);
    return n;
}
// Returns the number of tasks alive; any thread. Tasks may come and go during the count, but once
// all workers have acknowledged none comes, so a result of 0 is final. Ends are read before spawns,
// so that each end that is counted has its spawn counted, too. All sums are modulo a word.
static uintptr_t volt__count_alive(volt_rt *rt) {
    uint32_t started = volt__started(rt);
    uintptr_t n = 0;
    uint64_t n_ended;
    for (uint32_t i = 0; i < started; i++)
        n -= volt__load_acq(&rt->workers[i]->completed); // [S2] with complete
    n += (uintptr_t)volt__count_outside(rt, started, &n_ended);
    n -= (uintptr_t)n_ended;
    for (uint32_t i = 0; i < started; i++)
        n += volt__load_acq(&rt->workers[i]->spawned); // [S2] with admit
    return n;
}

//==================================================================================================
// >>finish  the end of a task: join word, group, completion
//==================================================================================================
// The end of a task. Its runner stores the result. Then, in this order, it completes the join word,
// leaves the group, sets COMPLETE and releases the reference of the task's life, and counts the
// end. The end of a root task also begins the shutdown.
//   - The slot is freed with the last reference, by any thread.
//   - The end is counted after that: once all ends are counted, a worker stops the runtime.
//   - Any thread may call volt__task_drop and volt__task_free. A waiter is registered and
//     unregistered by the owner of the handle. A worker that parks calls volt__stop_if_done. The
//     functions that complete a task are called by its runner, in the last poll of the task.
// No lock of the runtime is held, except the guest_lock of a guest.

// Frees the slot of a task that has no references. w: the worker that the calling thread carries,
// of any runtime, or NULL. Slots of another runtime are not batched, since the batch could outlive
// that runtime.
static inline void volt__task_free_here(volt__worker *w, volt__task *t) {
    const volt__slab *s = volt__slab_of(t);
    if (w && s->heap == &w->heap) volt__heap_free_local(&w->heap, t);
    else if (w && s->rt == w->rt) volt__remote_batch_add(&w->remote_batch, t);
    else volt__heap_free_remote(t);
}
static void volt__task_free(volt__task *t) { volt__task_free_here(VOLT_TLS_GET(), t); }
// Releases a reference, and frees the task if it was the last one.
static void volt__task_drop(volt__task *t) {
    volt_rt *rt = volt__slab_of(t)->rt;
    volt__worker *w = volt__current_worker(rt);
    if (!w) volt__rt_pin(rt);
    if (volt__task_release(t)) volt__task_free_here(w, t);
    if (!w) volt__rt_unpin(rt);
}

// ---- join word: 0, a waiter, or DONE
// A waiter is the address of a task, to which the word holds a reference, or that of a parker with
// the low bit set. Only a task with a handle uses its join word.
//   from    event       to      done by               and then
//   0       register    waiter  owner of handle: cas  (a task has retained itself before)
//   waiter  unregister  0       that waiter: cas      a task releases that reference
//   0       complete    DONE    runner: xchg          (u.result was written before)
//   waiter  complete    DONE    runner: xchg          wakes the waiter, releases that reference
//   DONE    register    DONE    owner of handle       reads the result
//   DONE    unregister  DONE    that waiter           is being woken; a thread waits for its parker
//   waiter  register    -       a second joiner       misuse: the program stops
#define VOLT__JOIN_DONE ((void *)UINTPTR_MAX)
#define VOLT__JOIN_PARKER ((uintptr_t)1)

// Registers a waiter, which stays in the word until the task ends or the waiter unregisters.
// Returns 1 if registered, 0 if the task has ended.
static int volt__join_register(volt__task *t, void *waiter) {
    void *current = NULL;
    VOLT_ASSERT(waiter && waiter != VOLT__JOIN_DONE);
    if (volt__cas_acq_rel(&t->join, &current, waiter)) return 1; // [T3] with complete
    if (current != VOLT__JOIN_DONE) volt__misuse_current("another join waits for the same task");
    return 0;
}
// Returns 1 if unregistered, 0 if the task has ended: its runner wakes the waiter, or has done so.
static int volt__join_unregister(volt__task *t, void *waiter) {
    return volt__cas_acq_rel(&t->join, &waiter, (void *)NULL); // [T3] with complete
}
static inline int volt__join_is_done(volt__task *t) {
    return volt__load_acq(&t->join) == VOLT__JOIN_DONE; // [T3] with complete
}
static void volt__join_complete(volt__task *t) {
    void *waiter = volt__xchg_acq_rel(&t->join, VOLT__JOIN_DONE); // [T3] with join
    uintptr_t bits = (uintptr_t)waiter;
    if (!waiter) return;
    if (bits & VOLT__JOIN_PARKER) {
        volt__parker_set((volt__parker *)(bits - VOLT__JOIN_PARKER));
    } else {
        volt__task *joiner = (volt__task *)waiter;
        if (volt__task_wake(joiner)) volt__schedule(joiner);
        volt__task_drop(joiner);
    }
}

// ---- groups: the end of a member
// The rest of groups is in >>scopes. The transitions are made under lock_, except those to unowned:
// no member is left then, and only the owner can spawn one.
//   from           event       to       done by                      and then
//   unowned        spawn       live     any task: becomes the owner  cannot end before the group
//   live           spawn       live     owner, members               -
//   live           last end    drained  runner of that member        wakes waiters. LAST TOUCH
//   drained        spawn       live     owner                        -
//   drained        wait, next  unowned  owner, if no result is left  wait clears the error
//   live           cancel      live     any thread                   members are polled cancelled
//   live, drained  close       closing  owner; its runner at its end  spawns give -ECANCELED
//   closing        all ended   unowned  next poll of the owner       drops results; ids start at 0

// Called under lock_. Removes t from the list of live members.
static void volt__group_unlink(volt_group *g, volt__task *t) {
    volt__group_link *x = volt__task_group_link(t);
    VOLT_ASSERT(g->n_live_ > 0 && x->group == g);
    if (x->g_prev) volt__task_group_link(x->g_prev)->g_next = x->g_next;
    else g->live_ = x->g_next;
    if (x->g_next) volt__task_group_link(x->g_next)->g_prev = x->g_prev;
}
// The end of a member. LAST TOUCH of the group at the unlock: its owner may then resume and free
// the group.
static void volt__group_child_ended(volt__task *t, int64_t result) {
    volt_group *g = volt__task_group_link(t)->group;
    volt__chain c;
    volt__chain_init(&c);
    volt__lock(&g->lock_);
    volt__group_unlink(g, t);
    if (result < 0 && g->error_ == 0) g->error_ = result;
    g->n_live_--;
    if (g->collects_) { // t is kept by the reference made for the group at its spawn
        volt__task_group_link(t)->g_next = NULL;
        if (g->done_last_) volt__task_group_link(g->done_last_)->g_next = t;
        else g->done_ = t;
        g->done_last_ = t;
    }
    if (g->collects_ || g->n_live_ == 0) volt__list_fire_all(&g->waiters_, VOLT__FIRED, &c);
    VOLT_ASSERT(!g->live_ == (g->n_live_ == 0));
    volt__unlock(&g->lock_);
    volt__schedule_chain(&c);
}

// Returns the state of the task, which for an external one is the memory of the caller of volt_run
// or volt_block_on.
static void *volt__state_of(volt__task *t) {
    void *state = volt__task_state(t);
    return t->flags & VOLT__EXTERNAL ? *(void **)state : state;
}
static volt__node *volt__root_frame(volt__task *t) {
    return &((volt_frame *)volt__state_of(t))->node_;
}
// Returns the innermost open scope of a frame, or NULL if there is none.
static inline volt__scope *volt__scope_top(const volt__node *frame) {
    uintptr_t waiter = (uintptr_t)frame->waiter_;
    return waiter & VOLT__WAITER_IS_SCOPE ? (volt__scope *)(waiter - VOLT__WAITER_IS_SCOPE) : NULL;
}
static int volt__is_stopped(volt_rt *rt) {
    return (int)volt__load_acq(&rt->is_stopped); // [S1] with stop
}
// Step 4 of the shutdown. Called by a worker that has counted its ends and has then passed the
// fence of volt__idle_park: of two workers that end the last two tasks, at least one sees both ends
// [S2].
static void volt__stop_if_done(volt_rt *rt) {
    if (volt__load_acq(&rt->acks) != 0 || volt__is_stopped(rt)) return; // [S1] with ack
    if (volt__count_alive(rt) != 0) return;
    volt__store_rel(&rt->is_stopped, 1); // [S1] with workers and waiters
    VOLT_FUTEX_WAKE(&rt->is_stopped, INT_MAX);
    volt__unpark_all(rt);
}

// Publishes the end of a task that is not private. The reference of the task's life is still held.
static void volt__publish_end(volt__worker *w, volt__task *t, int64_t result) {
    if (t->n_armed)
        volt__misuse_cx(&w->cx, "task ended with a wait still pending, after this line");
    if (t->flags & VOLT__IS_ROOT) w->rt->root_result = result;
    if (t->flags & VOLT__HAS_HANDLE) volt__join_complete(t);
    if (t->flags & VOLT__HAS_GROUP_LINK) volt__group_child_ended(t, result);
}
static inline void volt__count_end(volt__worker *w) {
    // last: a worker that sees the sums equal stops the runtime
    volt__store_rel(&w->completed, w->completed + 1); // [S2] with alive
}
// Returns the scope of a group that the function has left open, or NULL. Shields are closed when
// the function returns, so the top scope of the root frame can only be a group.
static inline volt__scope *volt__unclosed_group(volt__task *t) {
    return t->flags & VOLT__HAD_GROUP ? volt__scope_top(volt__root_frame(t)) : NULL;
}
// A group that was left open is closed before the task ends, because it lies in the task's memory
// and its members refer to it. If there is one, u.fn is replaced by the function that closes it,
// the result is kept in the root frame until then, and 1 is returned; else 0.
static int volt__must_close_group(volt__task *t, int64_t result) {
    volt__node *root = volt__root_frame(t);
    volt__scope *s = volt__unclosed_group(t);
    VOLT_ASSERT(s == volt__scope_top(root));
    if (!s) return 0;
    root->key_.result_ = result;
    t->u.fn = s->close_;
    return 1;
}
// Completes any task. Returns 1, or 0 if the task must be polled on, to close a group first.
static __attribute__((noinline)) int volt__complete(volt__worker *w, volt__task *t,
                                                    int64_t result) {
    if (volt__must_close_group(t, result)) return 0;
    int is_root = t->flags & VOLT__IS_ROOT;
    t->u.result = result;
    volt__publish_end(w, t, result);
    if (volt__task_finish(t)) volt__task_free_here(w, t);
    volt__count_end(w);
    if (is_root) volt__shutdown_begin(w->rt);
    return 1;
}
// Completes a private task, whose result no handle or group can ask for. Returns 1, or 0 if the
// task is not private.
static inline int volt__complete_private(volt__worker *w, volt__task *t) {
    if (VOLT__UNLIKELY(!volt__task_finish_private(t))) return 0;
    volt__task_free_here(w, t);
    volt__count_end(w);
    return 1;
}

//==================================================================================================
// >>poll  one poll of one task
//==================================================================================================
// One poll of one task by the carrier of a worker: begin, call of the function, then suspension,
// requeue or completion. No lock is held but the guest_lock of a guest.
//   - From volt__poll_begin until the task is suspended or completed, its RUNNING bit is set and
//     the worker owns its fields. After that *t may be gone.
//   - w->cx is the context of the poll in progress. Each poll starts it from w->fresh_cx.
//   - A private task begins, yields and finishes by plain stores to its word. All other changes of
//     a word are RMWs.
// The volt__check_ functions are called inside a poll, by user code and by leaves; all others by
// the carrier of w.

// ---- countdown
// inject_due, event_due and, in a guest, quota count polls down to 0. For all of them each poll
// decrements only w->countdown, which starts at the smallest of them. Settling brings them up to
// date: it subtracts the polls made since the last settling from each.
static void volt__countdown_settle(volt__worker *w) {
    VOLT_ASSERT(w->countdown <= w->countdown_from);
    uint32_t n = w->countdown_from - w->countdown;
    w->countdown_from = w->countdown;
    w->stats.polls += n;
    w->polls_since += n;
    w->inject_due -= volt__min32(w->inject_due, n);
    w->event_due -= volt__min32(w->event_due, n);
    w->quota -= volt__min32(w->quota, n);
}
// Starts w->countdown at the smallest of them, or at 1 if that is 0. Called after a settling.
static void volt__countdown_start(volt__worker *w) {
    VOLT_ASSERT(w->countdown == w->countdown_from); // settled
    uint32_t n = volt__min32(w->inject_due, w->event_due);
    if (w->is_guest) n = volt__min32(n, w->quota);
    w->countdown = w->countdown_from = n > 0 ? n : 1;
}

// ---- checks of debug builds

VOLT_API void volt__check_root(const volt_cx *cx, const volt__node *frame, size_t size) {
    volt__task *t = cx->task_;
    VOLT__REQUIRE_CX(cx, frame == volt__root_frame(t),
                     "the first VOLT_BEGIN of a task must get the task's own state");
    VOLT__REQUIRE_CX(cx,
                     (t->flags & VOLT__EXTERNAL) ||
                         size <= volt__slab_of(t)->slot_size - sizeof *t,
                     "state struct larger than the one that was spawned: wrong function?");
}
// Locals of an async function do not survive a wait, so an object that an await takes by address
// must live in the state struct, even where a local would happen to work. The locals of all polled
// functions lie between this frame and cx->stack_, since this function is not inlined. On RISC-V
// the address of a frame is that of its end, where the caller's lowest local may lie.
#if VOLT_DEBUG
static __attribute__((noinline)) void volt__check_not_on_stack(const volt_cx *cx, const void *p) {
    const char *at = (const char *)p;
    int is_local = at >= (const char *)__builtin_frame_address(0) && at < cx->stack_;
    VOLT__EXPECT_CX(cx, !is_local, "object on the stack: move it to the state struct");
}
#else
#  define volt__check_not_on_stack(cx_, p_) ((void)0)
#endif
VOLT_API void volt__check_child(const volt_cx *cx, const volt__node *frame) {
    volt__check_not_on_stack(cx, frame);
    VOLT__EXPECT_CX(cx, frame->resume_line_ == 0 || frame->resume_line_ == VOLT__DONE,
                    "child is in use by another await, or its frame is not zeroed");
    (void)frame;
}

// ---- the poll

// Ends a poll that has returned pending: requeues the task if it yields or was woken during the
// poll, else leaves it to the wait that it has begun.
static inline void volt__poll_pending(volt__worker *w, volt__task *t) {
    volt_cx *cx = &w->cx;
    // A function without VOLT_BEGIN leaves no frame and no site.
    const char *site = VOLT__LIKELY(cx->frame_ != NULL)
                           ? cx->site_
                           : volt__load_rlx(&t->spawn_site); // rlx: our own
    volt__store_rlx(&t->wait_site, site); // rlx: for dumps
    if (cx->wait_ & VOLT__REQUEUE) {
        if (VOLT__UNLIKELY(!volt__task_yield_private(t, cx->shield_depth_))) {
            t->shield_depth = cx->shield_depth_;
            volt__task_yield(t);
        }
        volt__trace_wake(w->rt, w, t);
        volt__push_ring(w, t);
        return;
    }
    t->shield_depth = cx->shield_depth_;
    volt__store_rlx(&t->wait, cx->wait_);                 // rlx: for dumps
    volt__store_rlx(&t->wait_ms, volt__wait_mark(w->ms)); // rlx: for dumps
#if VOLT_DEBUG
    if (t->n_armed == 0 && cx->wait_ == 0 && !(t->flags & VOLT__GAVE_WAKER) &&
        // rlx: no waker was given out, so no wake-up is on its way
        !(volt__load_rlx(&t->word) & VOLT__NOTIFIED))
        volt__log(w->rt, VOLT_LOG_NEVER_WAKES, site);
#endif
    if (!volt__task_suspend(t)) return; // *t may be gone
    volt__trace_wake(w->rt, w, t);
    volt__push_ring(w, t);
}
// Prepares w->cx and the word of the task for a poll. Returns the state. A private task needs only
// fresh_cx: it is not cancelled and has no shield. A closing worker treats no task as private,
// since the sweep may retain any.
static VOLT__HOT void *volt__poll_begin(volt__worker *w, volt__task *t) {
    volt_cx *cx = &w->cx;
    VOLT_ASSERT(cx->last_tries_ == 0);
    cx->frame_ = NULL;
    cx->task_ = t;
    VOLT__DEBUG_DO((cx->is_awaiting_ = 1, cx->at_ = t->wait_site));
    memcpy(&cx->wait_, &w->fresh_cx, sizeof w->fresh_cx);
    if (VOLT__LIKELY(volt__task_begin_private(t, w->is_closing))) return volt__task_state(t);
    if (w->is_closing) t->flags |= VOLT__IS_SHARED; // with the sweep
    cx->cancel_level_ = (uint8_t)((uint32_t)volt__task_begin(t) | w->is_closing);
    cx->budget_at_cancel_ = cx->budget_;
    cx->shield_depth_ = t->shield_depth;
    return volt__state_of(t);
}
// A local that is wrongly used after an await often still has its value, because the stack is as
// the last poll left it. So a debug build overwrites the first VOLT_STACK_FILL bytes of stack that
// the next poll will use.
#if VOLT_STACK_FILL > 0
static __attribute__((noinline)) void volt__stack_fill(void) {
    unsigned char below[VOLT_STACK_FILL];
    memset(below, 0xa5, sizeof below);
    __asm__ __volatile__("" : : "r"(below) : "memory"); // keeps the memset: `below` is never read
}
#else
#  define volt__stack_fill() ((void)0)
#endif
static VOLT__HOT void volt__poll_task(volt__worker *w, volt__task *t) {
    volt_cx *cx = &w->cx;
    VOLT_ASSERT(!w->is_searching && !w->needs_watchdog); // volt__searching_done was called
    int64_t since = volt__trace_poll_begin(w, t);
    void *state = volt__poll_begin(w, t);
    for (;;) {
        volt__stack_fill();
        volt_poll p = t->u.fn(cx, state);
        VOLT_ASSERT(cx->task_ == t);
        if (volt_is_pending(p)) {
            volt__trace_poll_end(w, t, 1, since);
            volt__poll_pending(w, t);
            return;
        }
        VOLT_ASSERT(cx->shield_depth_ == 0);
        // If a group was left open, this poll goes on with the function that closes the group.
        if (!VOLT_TRACE || !volt__unclosed_group(t)) volt__trace_poll_end(w, t, 0, since);
        if (VOLT__LIKELY(volt__complete_private(w, t))) return;
        if (volt__complete(w, t, volt_value(p))) return;
        state = volt__state_of(t); // same value, recomputed: cheaper than keeping it in every poll
    }
}

//==================================================================================================
// >>watchdog  a one-shot timer that finds stuck workers
//==================================================================================================
// A one-shot timerfd per runtime, in the epoll set of every worker, and armed while any worker is
// awake. Its expiry wakes one worker, which rescues the stuck ones. There is no timer if the
// runtime is configured with one worker or without the watchdog, and none is armed while only one
// worker has been started.
//   - A worker that leaves the parked set arms the timer before its first poll, unless the timer is
//     armed.
//   - The worker that takes the expiry scans the others that are awake: a worker that has made no
//     event poll since the last scan is stuck.
//   - The events, timers and tasks of a stuck worker move to the scanning worker.
//   - After a scan the scanning worker arms the timer again, before its next poll or, if others are
//     awake, before it parks. The timer is never disarmed: with all workers parked it expires once.
// All functions but volt__watchdog_init are called by the carrier of a worker, without locks.
//
//   from   event   to     done by                                       and then
//   off    claim   armed  worker after its start, sleep or scan: cas    sets the timer
//   armed  expiry  armed  the kernel                                    wakes a parked one, if any
//   armed  take    off    worker with the event or a full batch: cas    scans, later claims again
// A full batch of events counts as an expiry, which may be hidden behind it. Concurrent events:
//   two claims, two takes  One of the two CASes succeeds.
//   claim and take         By their fences [W1], the claimer finds the timer off, or the taker sees
//                          the claimer awake.
//   two scans              If one is delayed by a period, it may set event_polls_seen back. A stuck
//                          worker is then found one period later.

// Returns 0 or -errno.
static int volt__watchdog_init(volt__watchdog *watchdog, uint32_t period_us) {
    watchdog->is_armed = 0;
    watchdog->period = (int64_t)period_us * 1000;
    watchdog->fd = volt__timer_fd_open();
    return watchdog->fd < 0 ? watchdog->fd : 0;
}
// Returns 1 if the caller must set the timer, 0 if it is armed already. The fence orders the end of
// the caller's sleep before the load of is_armed: either the caller arms the timer, or the worker
// that has just taken the expiry sees the caller awake.
static int volt__watchdog_claim(volt__watchdog *watchdog) {
    uint32_t off = 0;
    volt__fence_sc(&watchdog->is_armed);                    // [W1] with take
    if (volt__load_rlx(&watchdog->is_armed) != 0) return 0; // rlx: ordered by [W1]
    return volt__cas_acq_rel(&watchdog->is_armed, &off, 1); // [W2] with take
}
// Returns 1 if the caller has won the expiry: it must scan, and then arm the timer again if a
// worker is awake. Returns 0 if another worker has won it.
static int volt__watchdog_take(volt__watchdog *watchdog) {
    uint32_t on = 1;
    if (!volt__cas_acq_rel(&watchdog->is_armed, &on, 0)) return 0; // [W2] with claim
    volt__fence_sc(&watchdog->is_armed);                           // [W1] with claim
    return 1;
}

// ---- scan and rescue

// Called by a worker before its first poll after its start, a sleep or a scan, and when it parks
// before such a poll while others are awake: a worker that runs tasks must be watched.
static void volt__watchdog_arm(volt__worker *w) {
    volt_rt *rt = w->rt;
    if (VOLT__ONE_WORKER || rt->watchdog.fd < 0 || volt__started(rt) < 2) return;
    if (volt__watchdog_claim(&rt->watchdog))
        volt__timer_fd_set(rt->watchdog.fd, rt->watchdog.period);
}
// Moves the tasks that a thief cannot steal to *c: the claimed ones, then the one in the LIFO slot.
// If the owner holds local_lock, it is just taking a task, and so is not stuck.
static void volt__rescue_local(volt__worker *stuck, volt__chain *c) {
    if (!volt__lifo_is_full(stuck) && volt__ring_n_claimed(&stuck->ring) == 0) return;
    if (!volt__biased_revoke(&stuck->local_lock)) return;
    volt__ring_pop_claimed(&stuck->ring, c);
    volt__task *t = volt__load_acq(&stuck->lifo); // [Q4] with push
    if (t) {
        volt__store_rlx(&stuck->lifo, (volt__task *)NULL); // rlx: the lock orders it
        volt__chain_push(c, t);
    }
    volt__biased_rebias(&stuck->local_lock);
}
// Moves the events, timers and tasks of a stuck worker to the scanning worker w. The room in the
// ring of w limits the events, the tasks from the inbox, and those from the ring, of which half are
// stolen; later searches and scans take the rest. The steal floor of the stuck worker is ignored.
static void volt__rescue(volt__worker *w, volt__worker *stuck) {
    volt__reactor_events got;
    VOLT_ASSERT(stuck != w && w->is_searching);
    volt__reactor_poll(&stuck->reactor, &w->rt->fds, volt__ring_room(&w->ring), 0, &got);
    // The expiry is not lost: w is scanning already, and will arm the timer again.
    if (got.watchdog_expired) (void)volt__watchdog_take(&w->rt->watchdog);
    volt__wheel_try_fire(&stuck->wheel, volt__tick_floor(w->rt, VOLT_NOW_NS()), &got.chain);
    volt__trace_wakes(w->rt, w, &got.chain);
    volt__rescue_local(stuck, &got.chain);
    if (volt__has_inboxes(w->rt))
        volt__injector_pop(&stuck->inbox, 1, volt__ring_room(&w->ring), &got.chain);
    volt__overflow_pop_all(&stuck->overflow, &got.chain);
    w->stats.rescued += got.chain.len;
    volt__push_batch(w, &got.chain);
    w->stats.rescued += volt__ring_steal(&stuck->ring, &w->ring);
}
// Rescues each worker that is awake and has made no event poll since the last scan. Only a worker
// that is counted as searching may steal; volt__searching_done ends that, and arms the timer again.
static void volt__watchdog_scan(volt__worker *w) {
    volt_rt *rt = w->rt;
    if (VOLT__ONE_WORKER) return;
    w->stats.watchdog_scans++;
    w->needs_watchdog = 1;
    for (uint32_t i = 0, n = volt__started(rt); i < n; i++) {
        volt__worker *v = rt->workers[i];
        if (v == w || volt__idle_is_parked(&rt->idle, i)) continue;
        uint32_t event_polls = volt__load_rlx(&v->event_polls);             // rlx: only compared
        int is_stuck = event_polls == volt__load_rlx(&v->event_polls_seen); // rlx: only compared
        // rlx: two scans at once at most delay a rescue
        volt__store_rlx(&v->event_polls_seen, event_polls);
        if (!is_stuck) continue;
        if (!w->is_searching) volt__idle_begin_search_always(&rt->idle);
        w->is_searching = 1;
        volt__rescue(w, v);
    }
}
// Returns 1 if another worker is awake.
static int volt__others_awake(const volt__worker *w) {
    if (VOLT__ONE_WORKER) return 0;
    return volt__idle_count_others(&w->rt->idle, w->index) < volt__started(w->rt) - 1;
}

//==================================================================================================
// >>worker  the loop of a worker: maintenance, events, search, park
//==================================================================================================
// The loop of a worker: its carrier finds the next task and polls it, and parks the worker while
// there is none. The next task is the one that the first of these steps finds:
//   1. If inject_due has run out: the next non-empty one of the queues behind the ring (overflow
//      queue, inbox, injector), in rotation. A busy ring would starve them otherwise.
//   2. If event_due has run out, and step 1 has found no task: an event poll, which fills the ring.
//   3. The LIFO slot, but at most VOLT_LIFO_MAX times in a row.
//   4. The ring. If it is empty, the LIFO slot without that limit.
//   5. The overflow queue, then the inbox, then the worker's share of the injector.
//   6. An event poll, then steps 3 to 5 again.
//   7. A search: steals from the other workers, then step 5 again.
//   8. Parking. The end of the sleep includes an event poll; then the worker goes on with step 3.
// inject_due and event_due count polls down. The only worker of a runtime skips steps 6 and 7.
// Before a task is polled twice in a row, step 5 is tried, and then an event poll ahead of time.
//
//   - During a poll the worker is not searching, and it has armed the watchdog since it last slept
//     or scanned. volt__searching_done sees to both before the poll.
//   - A worker parks only while its LIFO slot, ring and overflow queue are empty.
//   - The carrier leaves the loop only between two polls: when the runtime has stopped, the drain
//     timeout has expired, another thread waits for the carrier lock, or the step of a guest ends.
// All functions are called by the carrier, except volt__time_left, volt__carrier_acquire, which
// makes the caller the carrier, and volt__sleep_deadline, which volt_rt_deadline calls between two
// steps of a guest. None is called under another lock, except the guest_lock of a guest.

// ---- measurement and housekeeping
#define VOLT__HOUSEKEEP_EVERY 16u // calls of volt__maintain
#define VOLT__TRIM_MS 1000u

// Returns the weight, in 1/256, of an average over n polls in the running one: 1 - 0.9^min(n, 20).
static uint32_t volt__ewma_weight(uint32_t n) {
    static const uint8_t w[] = { 0,   26,  49,  69,  88,  105, 120, 134, 146, 157, 167,
                                 176, 184, 191, 197, 203, 209, 213, 218, 221, 225 };
    return w[volt__min32(n, sizeof w - 1)];
}
// The steal floor. A steal costs the victim VOLT_STEAL_COST_NS: cache misses on the task, its slab
// and its joiner. While most polls complete their task in less time, the worker keeps tasks:
//   - If at most every second poll spawns a task, it keeps all of them, since little work will come
//     of them, and wakes no other worker for them.
//   - Otherwise it keeps up to wake_at - 2 tasks in the ring. With the LIFO slot these are fewer
//     than wake_at, so no worker was woken for them, and none need be woken when the floor falls.
// A rescue ignores the floor, so no task stays at a stuck worker. A guest has no floor, because its
// thread leaves for the application's loop.
// While workers steal, they wait for each other's cache lines: a short task may measure longer by a
// factor of up to their number. So where tasks may be short, all steals are refused on trial, for
// VOLT__TRIAL of each VOLT__TRIAL_EVERY intervals: short polls then measure short, and the refusal
// lasts. An interval of few polls measures its event poll most, and counts for less.
#define VOLT__TRIAL 8u
#define VOLT__TRIAL_EVERY 256u
#define VOLT__TRIAL_POLLS 16u // an interval of that many counts whole
// Returns 1 if all steals must be refused, because polls are short or this interval is a trial.
static int volt__tasks_are_short(volt__worker *w, int64_t ns) {
    if (ns < VOLT_STEAL_COST_NS) return 1;
    if (ns >= INT64_C(4) * VOLT_STEAL_COST_NS * volt__started(w->rt)) return 0;
    uint32_t at = w->trial_at / VOLT__TRIAL_POLLS % VOLT__TRIAL_EVERY;
    w->trial_at += volt__min32(w->polls_since, VOLT__TRIAL_POLLS);
    return at < VOLT__TRIAL;
}
// Returns the steal floor. `ns` is the average time of a poll since the last event poll.
static uint32_t volt__steal_floor_for(volt__worker *w, int64_t ns) {
    if (volt__is_solo(w) || w->is_guest) return 0;
    if (w->completed - w->completed_then <= w->polls_since / 2) return 0;
    if (w->spawned - w->spawned_then <= w->polls_since / 2)
        return volt__tasks_are_short(w, ns) ? VOLT__NO_STEAL : 0;
    return ns < VOLT_STEAL_COST_NS ? w->wake_at - 2 : 0;
}
static void volt__update_steal_floor(volt__worker *w, int64_t ns) {
    uint32_t steal_floor = volt__steal_floor_for(w, ns);
    if (steal_floor == VOLT__NO_STEAL) w->wake_at = VOLT__NO_STEAL;
    volt__store_rlx(&w->ring.steal_floor, steal_floor); // rlx: only compared
}
// Returns the upper limit of the next event_every. A burst of short polls does not mean that the
// next ones are short, so the interval grows slowly: at most it doubles (plus 1), and by less if
// the last one `took` less than VOLT_EVENT_NS.
static uint32_t volt__event_interval_max(const volt__worker *w, int64_t took) {
    uint32_t every = w->event_every, more = every;
    if (took < VOLT_EVENT_NS) // also if the clock went back
        more = took > 0 ? (uint32_t)(every * took / VOLT_EVENT_NS) : 0;
    return volt__min32(every + more + 1, w->rt->cfg.event_interval);
}
// Called by each event poll, at time `now`. Derives the intervals and thresholds of the worker from
// the average time of a poll.
static void volt__measure(volt__worker *w, int64_t now) {
    if (w->polls_since > 0) {
        int64_t ns = (now - w->last_event_poll) / w->polls_since;
        // one outlier must not dominate the average
        int64_t sample = ns > 8 * w->avg_ns ? 8 * w->avg_ns : ns;
        w->avg_ns += (sample - w->avg_ns) * (int64_t)volt__ewma_weight(w->polls_since) / 256;
        if (w->avg_ns < 1) w->avg_ns = 1;
        w->event_every =
            volt__clamp32(VOLT_EVENT_NS / w->avg_ns, 1,
                          volt__event_interval_max(w, now - w->last_event_poll));
        w->inject_every =
            volt__clamp32(VOLT_INJECT_NS / w->avg_ns, VOLT_INJECT_MIN, VOLT_INJECT_MAX);
        w->wake_at = volt__clamp32(VOLT_WAKE_COST_NS / w->avg_ns, 2, VOLT_RING_CAP - 1);
        w->ring.claim_more = volt__clamp32(VOLT_CLAIM_NS / w->avg_ns, 1, VOLT_CLAIM_MAX) - 1;
        volt__update_steal_floor(w, ns);
    }
    w->polls_since = 0;
    w->completed_then = w->completed;
    w->spawned_then = w->spawned;
    w->last_event_poll = now;
}
static void volt__count_busy(volt__worker *w, int64_t now) {
    w->stats.busy_ns += (uint64_t)(now - w->busy_since);
    w->busy_since = now;
}
static void volt__publish_stats(volt__worker *w) {
    volt__countdown_settle(w);
    // the difference is taken modulo a word, which may be narrower than the counters, and wrap
    w->stats.spawned += w->spawned - (uintptr_t)w->stats.spawned;
    w->stats.completed += w->completed - (uintptr_t)w->stats.completed;
    volt__lock(&w->stats_lock);
    w->published = w->stats;
    volt__unlock(&w->stats_lock);
}
// Called every VOLT__HOUSEKEEP_EVERY calls of volt__maintain, and before parking. Returns batched
// slots to other heaps, collects slots of its own heap that others have freed, and publishes the
// counters. If VOLT__TRIM_MS have passed, also destroys the empty slabs that were not needed since
// the last time, in its own heap and in its part of the outside heaps.
static void volt__housekeep(volt__worker *w) {
    w->housekeep_due = VOLT__HOUSEKEEP_EVERY;
    volt__remote_batch_flush(&w->remote_batch);
    volt__heap_drain(&w->heap);
    if (w->ms >= w->trim_ms) {
        w->trim_ms = w->ms + VOLT__TRIM_MS;
        volt__slabs_reap(volt__heap_trim(&w->heap));
        for (uint32_t i = w->index; i < VOLT__OUTSIDE_HEAPS; i += w->rt->n_workers)
            volt__heap_trim_shared(&w->rt->outside_heaps[i]);
    }
    volt__publish_stats(w);
}
// Step 2 of a shutdown, see >>shutdown: acknowledges it, once (UINT32_MAX stands for -1). At worker
// 0 of volt_run, which is no guest but has no thread of the runtime, the drain timeout starts here.
static void volt__check_shutdown(volt__worker *w) {
    if (w->is_closing || !volt__load_acq(&w->rt->is_closed)) return; // [S1] with begin
    w->is_closing = 1;
    if (volt__has_inboxes(w->rt)) volt__injector_close(&w->inbox);
    if (!w->has_thread && !w->is_guest && w->rt->cfg.drain_timeout > 0)
        w->drain_deadline = volt__time_add(VOLT_NOW_NS(), w->rt->cfg.drain_timeout);
    volt__shutdown_ack(w->rt, UINT32_MAX);
}

// ---- carrier lock
// A ticket lock: the thread whose ticket equals carrier_serving is the carrier. Between two polls
// the carrier releases the lock if another thread waits: usually one that has handed the worker off
// in the middle of a poll, and needs it back to finish that poll. A guest has guest_lock instead.
//   serving  event    to     done by                    and then
//   n        acquire  n      thread that gets ticket n  is the carrier
//   n        acquire  n      holder of a ticket above n unparks the worker, waits for its number
//   n        release  n + 1  carrier, has ticket n      wakes all: holder of n + 1 is the carrier

// Returns 1 if another thread waits. Called by the carrier.
static inline int volt__carrier_is_contended(const volt__worker *w) {
    // rlx: a thread that takes a ticket then unparks the worker, whose event poll checks again
    return volt__load_rlx(&w->carrier_ticket) - volt__load_rlx(&w->carrier_serving) != 1;
}
static inline void volt__carrier_check(volt__worker *w) {
    w->handoff_wanted = (uint8_t)volt__carrier_is_contended(w);
}
static void volt__carrier_acquire(volt__worker *w) {
    uint32_t ticket = volt__add_acq_rel(&w->carrier_ticket, 1); // [H1] before the wake-up below
    uint32_t serving = volt__load_acq(&w->carrier_serving);     // [H1] with release
    if (serving != ticket) volt__reactor_unpark(&w->reactor);
    for (; serving != ticket; serving = volt__load_acq(&w->carrier_serving)) // [H1] with release
        VOLT_FUTEX_WAIT(&w->carrier_serving, serving, VOLT_NEVER);
}
static void volt__carrier_release(volt__worker *w) {
    uint32_t *word = &w->carrier_serving;
    volt__store_rel(word, *word + 1); // [H1] with acquire
    VOLT_FUTEX_WAKE(word, INT_MAX);
}

// ---- event poll

// Polls the reactor and the wheel of w, and pushes the tasks that become runnable into its ring.
// Then checks for a shutdown, and for a thread that waits for the carrier lock. A parked worker
// first waits, for at most `timeout` ns (< 0: no limit), and leaves the parked set, searching if it
// was claimed. Returns 1 if the worker has taken the expiry of the watchdog, and must scan; else 0.
static int volt__drive_events(volt__worker *w, int is_parked, int64_t timeout) {
    volt_rt *rt = w->rt;
    volt__reactor_events got;
    VOLT_ASSERT(is_parked || timeout == 0);
    volt__countdown_settle(w);
    volt__reactor_poll(&w->reactor, &rt->fds, volt__ring_room(&w->ring), timeout, &got);
    if (is_parked && volt__idle_unpark(&rt->idle, w->index)) w->is_searching = 1;
    int64_t now = VOLT_NOW_NS();
    if (is_parked) {
        w->polls_since = 0; // the sleep is not poll time
        w->busy_since = now;
    }
    volt__count_busy(w, now);
    volt__measure(w, now);
    if (got.was_unparked) {
        volt__reactor_acknowledge(&w->reactor);
        w->stats.unparks++;
    }
    w->ms = volt__ms_floor(rt, now);
    w->stats.timers_fired += volt__wheel_fire(&w->wheel, volt__tick_floor(rt, now), &got.chain);
    w->stats.events += got.n_events;
    w->stats.event_polls++;
    volt__store_rlx(&w->event_polls, w->event_polls + 1); // rlx: only the owner writes it
    w->event_due = w->event_every;
    volt__countdown_start(w);
    volt__trace_wakes(rt, w, &got.chain);
    volt__push_batch(w, &got.chain);
    volt__check_shutdown(w);
    volt__carrier_check(w);
    if (VOLT__ONE_WORKER || rt->watchdog.fd < 0) return 0;
    return got.watchdog_expired && volt__watchdog_take(&rt->watchdog);
}

// ---- search and park

// Returns 1 if a search would find a task now.
static int volt__has_stealable_work(volt_rt *rt) {
    if (!volt__injector_is_empty(&rt->injector)) return 1;
    for (uint32_t i = 0, n = volt__started(rt); i < n; i++) {
        if (volt__ring_is_stealable(&rt->workers[i]->ring)) return 1;
        if (volt__overflow_is_stealable(rt->workers[i])) return 1;
        if (volt__has_inboxes(rt) && !volt__injector_is_empty(&rt->workers[i]->inbox)) return 1;
    }
    return 0;
}
// Called by a searching worker that has a task. Pushers rely on searching workers and wake none, so
// the last worker to end its search scans the queues again, and wakes another if there is a task.
static void volt__end_search(volt__worker *w) {
    VOLT_ASSERT(w->is_searching);
    w->is_searching = 0;
    if (volt__idle_end_search(&w->rt->idle) && volt__has_stealable_work(w->rt))
        volt__wake_worker(w->rt);
}
static inline volt__task *volt__pop_ring(volt__worker *w) {
    if (volt__is_solo(w)) return volt__ring_pop_solo(&w->ring);
    volt__biased_lock(&w->local_lock);
    volt__task *t = volt__ring_pop(&w->ring);
    volt__biased_unlock(&w->local_lock);
    return t;
}
// Returns the first task of *c, or NULL if it is empty. The others go into the ring.
static volt__task *volt__push_batch_keep_first(volt__worker *w, volt__chain *c) {
    volt__task *t = volt__chain_pop(c);
    if (t) volt__grow_batch(w);
    volt__push_batch(w, c);
    return t;
}
// Takes at most `most` tasks of the newest overflow batch. Returns the first, which needs no room
// in the ring; the others go into the ring. So one task is taken even while a steal in progress
// leaves no room: no other worker has to serve this overflow queue. Returns NULL if it is empty.
static volt__task *volt__next_from_overflow(volt__worker *w, uint32_t most) {
    volt__chain c;
    if (volt__overflow_is_empty(&w->overflow)) return NULL;
    volt__chain_init(&c);
    volt__overflow_pop(&w->overflow, VOLT__NEWEST, volt__min32(most, volt__ring_room(&w->ring) + 1),
                       &c);
    return volt__push_batch_keep_first(w, &c);
}
// Step 5. Returns NULL if no task was found.
static volt__task *volt__next_from_refill(volt__worker *w) {
    volt__task *t = volt__next_from_overflow(w, w->inject_batch);
    if (t) return t;
    return volt__refill(w) ? volt__pop_ring(w) : NULL;
}
// Called while the ring is empty. The LIFO slot may hold a task if its limit was reached.
static __attribute__((noinline)) volt__task *volt__next_local_slow(volt__worker *w) {
    volt__task *t = volt__lifo_take(w);
    return t ? t : volt__next_from_refill(w);
}
static inline void volt__end_lifo_run(volt__worker *w) {
    w->stats.lifo_polls += w->lifo_run;
    w->lifo_run = 0;
}
static inline volt__task *volt__next_local_locked(volt__worker *w, int is_solo) {
    volt__task *t = volt__load_rlx(&w->lifo); // rlx: under the lock
    if (t && w->lifo_run < VOLT_LIFO_MAX) {
        volt__store_rlx(&w->lifo, (volt__task *)NULL); // rlx: the lock orders it
        w->lifo_run++;
        return t;
    }
    if (w->lifo_run > 0) volt__end_lifo_run(w);
    return is_solo ? volt__ring_pop_solo(&w->ring) : volt__ring_pop(&w->ring);
}
// Steps 3 to 5. Returns NULL if no task was found.
static VOLT__HOT volt__task *volt__next_local(volt__worker *w) {
    volt__task *t;
    if (volt__is_solo(w)) {
        t = volt__next_local_locked(w, 1);
    } else {
        volt__biased_lock(&w->local_lock);
        t = volt__next_local_locked(w, 0);
        volt__biased_unlock(&w->local_lock);
    }
    return VOLT__LIKELY(t != NULL) ? t : volt__next_local_slow(w);
}
// Steals from the oldest overflow batch of `from`, else half of its ring if that is longer than the
// steal floor, else half of its inbox. Returns the number of tasks; they go into the ring of w.
static uint32_t volt__steal(volt__worker *w, volt__worker *from) {
    volt__chain c;
    volt__chain_init(&c);
    uint32_t n = 0;
    if (volt__overflow_is_stealable(from))
        n = volt__overflow_pop(&from->overflow, VOLT__OLDEST, VOLT_INJECT_BATCH, &c);
    volt__push_batch(w, &c);
    if (n == 0 && volt__ring_is_stealable(&from->ring)) n = volt__ring_steal(&from->ring, &w->ring);
    return n == 0 && volt__has_inboxes(w->rt) ? volt__refill_from(w, &from->inbox, 2) : n;
}
// Step 7. Returns NULL if no task was found, or if enough workers search already. A worker does not
// begin a search while all others are parked and the injector is empty: a parked worker owns no
// runnable task. A task that is being placed right now is not lost by that: its pusher wakes a
// worker, or the scan in volt__park finds the task.
static volt__task *volt__search(volt__worker *w) {
    volt_rt *rt = w->rt;
    uint32_t n = volt__started(rt);
    if (!w->is_searching) {
        if (volt__injector_is_empty(&rt->injector) && !volt__others_awake(w)) return NULL;
        if (!volt__idle_begin_search(&rt->idle, n)) return NULL;
        w->is_searching = 1;
    }
    w->stats.searches++;
    uint32_t start = volt__random_below(&w->random, n);
    for (uint32_t i = 0; i < n; i++) {
        volt__worker *v = rt->workers[(start + i) % n];
        uint32_t got = v == w ? 0 : volt__steal(w, v);
        if (got == 0) continue;
        w->stats.steals++;
        w->stats.stolen += got;
        volt__trace_steal(w, got);
        return volt__pop_ring(w);
    }
    return volt__next_from_refill(w);
}
// The time at which the carrier gives up waiting for the tasks to end in a shutdown. A pool thread
// never does: the worker needs a carrier until its own thread is back.
static volt_time volt__drain_deadline(const volt__worker *w) {
    return w->is_own_thread ? w->drain_deadline : VOLT_NEVER;
}
// The time of the next timer, if there is one, or the drain deadline, whichever is earlier.
static volt_time volt__sleep_deadline(volt__worker *w) {
    const volt_rt *rt = w->rt;
    volt_time end = volt__drain_deadline(w);
    uint64_t tick = volt__wheel_expiry(&w->wheel);
    if (tick >= (uint64_t)((VOLT_NEVER - rt->epoch) / VOLT_TICK_NS)) return end;
    volt_time due = rt->epoch + (int64_t)tick * VOLT_TICK_NS;
    return due < end ? due : end;
}
// Returns the ns from now until `at`, 0 if it has passed, or -1 for VOLT_NEVER.
static int64_t volt__time_left(volt_time at) {
    if (at == VOLT_NEVER) return -1;
    int64_t left = at - VOLT_NOW_NS();
    return left > 0 ? left : 0;
}
// Called with the worker in the parked set. Waits for an event, a timer, a wake-up or the drain
// deadline, and leaves the set. A guest that must not block only sets its timerfd, and stays in it.
static void volt__worker_sleep(volt__worker *w) {
    volt_time at = volt__sleep_deadline(w);
    int64_t timeout = volt__time_left(at);
    w->stats.parks++;
    w->has_slept = w->needs_watchdog = 1;
    if (w->guest_no_block) { // the application waits, on the epoll instance
        w->guest_parked = 1;
        volt__reactor_set_timer(&w->reactor, at, timeout);
        return;
    }
    volt__trace_park(w, VOLT_TRACE_PARK);
    int is_mine = volt__drive_events(w, 1, timeout);
    volt__trace_park(w, VOLT_TRACE_UNPARK);
    if (is_mine) volt__watchdog_scan(w);
}
// Called at the start of each step of a guest. If the guest is parked, this is the second half of
// volt__worker_sleep. If not, its last step ended by its quota, and events may be pending.
static void volt__guest_resume(volt__worker *w) {
    int was_away = w->guest_parked;
    w->guest_parked = 0;
    w->polls_since = 0; // the time between two steps is not poll time
    w->busy_since = VOLT_NOW_NS();
    if (volt__drive_events(w, was_away, 0)) volt__watchdog_scan(w);
}
// Step 8. A guest that must not block does not sleep: it returns with guest_parked set, and must
// leave its step. On any other return the worker is awake, with or without tasks in its queues. It
// is searching if it was claimed, if its scan has found a task, or if the runtime has stopped.
static void volt__park(volt__worker *w) {
    volt_rt *rt = w->rt;
    VOLT_ASSERT(!volt__lifo_is_full(w) && volt__ring_len(&w->ring) == 0);
    VOLT_ASSERT(volt__ring_n_claimed(&w->ring) == 0 && volt__overflow_is_empty(&w->overflow));
    volt__count_busy(w, VOLT_NOW_NS()); // before the counters are published
    volt__housekeep(w);
    if (VOLT__UNLIKELY(volt__backlog(w) > 0)) return; // an allocator hook has woken a task
    uint32_t left = volt__idle_park(&rt->idle, w->index, w->is_searching);
    w->is_searching = 0;
    if (w->is_closing) volt__stop_if_done(rt);
    // left == 0: pushers may have left a task to this worker while it was searching, see >>idle
    if (volt__is_stopped(rt) || (left == 0 && volt__has_stealable_work(rt))) {
        volt__idle_unpark_searching(&rt->idle, w->index);
        w->is_searching = 1;
        return;
    }
    if (w->needs_watchdog && volt__others_awake(w)) volt__watchdog_arm(w); // after a scan
    volt__worker_sleep(w);
}

// ---- the loop

static void volt__start_spare(volt_rt *rt); // below, in >>start

// Called when the worker has found a task, before the poll. Ends the search, and arms the watchdog
// in case this worker gets stuck. The first time after a sleep or the start of the thread, also
// starts a spare worker if none is parked: the watchdog needs a parked worker that it can wake.
static void volt__searching_done(volt__worker *w) {
    volt_rt *rt = w->rt;
    if (w->is_searching) volt__end_search(w);
    if (!w->needs_watchdog) return;
    w->needs_watchdog = 0;
    volt__watchdog_arm(w);
    if (!w->has_slept) return;
    w->has_slept = 0;
    if (volt__started(rt) < rt->n_workers && !volt__idle_has_parked(&rt->idle))
        volt__start_spare(rt);
}
// Step 2: an event poll, preceded by housekeeping at every VOLT__HOUSEKEEP_EVERY-th call.
static void volt__maintain(volt__worker *w) {
    if (--w->housekeep_due == 0) volt__housekeep(w);
    int is_mine = volt__drive_events(w, 0, 0);
    // A push into the ring wakes a worker when it brings the backlog to wake_at. No push has done
    // so if wake_at fell, if the LIFO slot was filled, or if the overflow queue became stealable.
    if (!volt__is_solo(w) && (volt__backlog(w) >= w->wake_at || volt__overflow_is_stealable(w)))
        volt__wake_worker(w->rt);
    if (!is_mine) return;
    volt__watchdog_scan(w);
    volt__searching_done(w); // arms the watchdog again: this worker is awake
}
static int volt__drain_expired(const volt__worker *w) {
    volt_time end = volt__drain_deadline(w);
    return end != VOLT_NEVER && VOLT_NOW_NS() >= end;
}
// Steps 6 to 8, repeated until there is a task. Returns NULL if the runtime has stopped, the drain
// timeout has expired, another thread waits for the carrier lock, or the guest must leave its step.
static volt__task *volt__wait_for_task(volt__worker *w) {
    for (;;) {
        volt__task *t = NULL;
        if (!volt__is_solo(w)) {
            if (volt__drive_events(w, 0, 0)) volt__watchdog_scan(w);
            t = volt__next_local(w);
            if (!t) t = volt__search(w);
        }
        if (!t) {
            if (volt__is_stopped(w->rt) || volt__drain_expired(w) || w->handoff_wanted) return NULL;
            volt__park(w);
            if (w->guest_parked) return NULL;
            t = volt__next_local(w);
            if (!t && w->has_slept) w->stats.spurious_unparks++;
        }
        if (t) {
            volt__searching_done(w);
            VOLT_ASSERT(!w->is_searching && !w->needs_watchdog);
            return t;
        }
    }
}
// Returns the most tasks that step 1 takes from a queue: inject_batch less the tasks that are in
// the ring already, but at least about a quarter of inject_batch.
static uint32_t volt__due_batch_size(const volt__worker *w) {
    uint32_t len = volt__ring_len(&w->ring), least = w->inject_batch / 4 + 1;
    return len + least < w->inject_batch ? w->inject_batch - len : least;
}
// Pops the share of one of n_takers workers from an inbox or the injector, and adds the number of
// tasks to *count. Returns the first task, or NULL if there is none; the others go into the ring.
static volt__task *volt__pop_queue_share(volt__worker *w, volt__injector *q, uint32_t n_takers,
                                         uint64_t *count) {
    volt__chain c;
    volt__chain_init(&c);
    uint32_t n = volt__min32(volt__due_batch_size(w), volt__ring_room(&w->ring) + 1);
    *count += volt__injector_pop(q, n_takers, n, &c);
    return volt__push_batch_keep_first(w, &c);
}
static volt__task *volt__pop_injector(volt__worker *w) {
    volt__injector *q = &w->rt->injector;
    if (volt__injector_is_empty(q)) return NULL; // before `started` is read: see volt__refill
    return volt__pop_queue_share(w, q, volt__started(w->rt), &w->stats.wakes_remote);
}
// The oldest batch of the overflow queue would starve while tasks keep spawning. So step 1 moves up
// to VOLT_INJECT_BATCH of its tasks to the injector, at most once in VOLT_OVERFLOW_MS.
static void volt__overflow_age(volt__worker *w) {
    volt__chain c;
    int is_empty = volt__overflow_is_empty(&w->overflow);
    if (!is_empty && w->ms - w->overflow_ms < VOLT_OVERFLOW_MS) return;
    w->overflow_ms = w->ms;
    volt__chain_init(&c);
    volt__overflow_pop(&w->overflow, VOLT__OLDEST, VOLT_INJECT_BATCH, &c);
    if (c.head) volt__inject(w->rt, &c);
}
// The queues behind the ring. Step 1 tries them in rotation, so that none starves another.
enum { VOLT__SOURCE_OVERFLOW, VOLT__SOURCE_INBOX, VOLT__SOURCE_INJECTOR, VOLT__SOURCES };
static volt__task *volt__pop_source(volt__worker *w, uint32_t source) {
    if (source == VOLT__SOURCE_OVERFLOW)
        return volt__next_from_overflow(w, volt__due_batch_size(w));
    if (source == VOLT__SOURCE_INJECTOR) return volt__pop_injector(w);
    if (!volt__has_inboxes(w->rt)) return NULL;
    return volt__pop_queue_share(w, &w->inbox, 1, &w->stats.inbox_tasks);
}
static volt__task *volt__pop_due_source(volt__worker *w) {
    volt__task *t = NULL;
    volt__overflow_age(w);
    for (uint32_t i = 0; i < VOLT__SOURCES && !t; i++) {
        w->last_source = (w->last_source + 1) % VOLT__SOURCES;
        t = volt__pop_source(w, w->last_source);
    }
    return t;
}
static int volt__has_more_queued(const volt__worker *w) {
    return !volt__overflow_is_empty(&w->overflow) || !volt__injector_is_empty(&w->rt->injector) ||
           (volt__has_inboxes(w->rt) && !volt__injector_is_empty(&w->inbox));
}
// Steps 1 and 2, if due. Returns 0 if step 3 is next, or 1 if *t is the result: the next task, or
// NULL if the carrier must leave the loop, because the quota of the guest's step is used up,
// another thread waits for the carrier lock, or the drain timeout has expired.
static __attribute__((noinline)) int volt__serve_due(volt__worker *w, volt__task **t) {
    *t = NULL;
    volt__countdown_settle(w);
    if (VOLT__UNLIKELY(w->is_guest && w->quota == 0)) return 1;
    if (w->inject_due == 0) {
        w->inject_due = w->inject_every;
        *t = volt__pop_due_source(w);
        if (volt__has_more_queued(w)) // due again after the tasks in the ring
            w->inject_due = volt__min32(w->inject_every, volt__ring_len(&w->ring) + 1);
        // If one poll is left to that, an event poll that is due by now comes first.
        if (w->inject_due == 1 && w->event_due == 0) w->inject_due = 2;
    }
    if (!*t && w->event_due == 0) {
        volt__maintain(w);
        if (VOLT__UNLIKELY(volt__drain_expired(w) || w->handoff_wanted)) return 1;
    }
    volt__countdown_start(w);
    return *t != NULL;
}
// Called if the previous poll was of t, too: no other task was ahead of it in the LIFO slot or the
// ring. The queues behind the ring go first, or else events and timers. Returns the next task, or
// NULL if the carrier must leave the loop.
static __attribute__((noinline)) volt__task *volt__next_before_lone_task(volt__worker *w,
                                                                         volt__task *t) {
    volt__task *first = volt__next_from_refill(w);
    int is_over = 0;
    if (!first) {
        // t was requeued because its budget is used up, not by volt_yield: no early event poll
        if (w->cx.budget_ == 0) return t;
        w->event_due = 0;
        is_over = volt__serve_due(w, &first) && !first;
    }
    volt__push_ring(w, t); // also if the carrier leaves: the next one, or a thief, takes t
    if (is_over) return NULL;
    if (!first) first = volt__pop_ring(w);
    return first ? first : volt__wait_for_task(w);
}
// Returns the next task, or NULL if the carrier must leave the loop. `last` is the task of the
// previous poll, which may be freed by now: the pointer is only compared.
static VOLT__HOT volt__task *volt__next_task(volt__worker *w, const volt__task *last) {
    volt__task *t;
    VOLT_ASSERT(last != NULL);
    if (VOLT__UNLIKELY(--w->countdown == 0) && volt__serve_due(w, &t)) return t;
    t = volt__next_local(w);
    if (VOLT__UNLIKELY(t == last)) return volt__next_before_lone_task(w, t);
    return VOLT__LIKELY(t != NULL) ? t : volt__wait_for_task(w);
}
// When the quota of a guest runs out, step 1 may be due but not done. Then the guest's next run
// begins with it: if each run is one poll, the queues behind the ring would starve otherwise.
static volt__task *volt__first_task(volt__worker *w) {
    volt__task *t = NULL;
    if (w->is_guest && w->inject_due == 0) (void)volt__serve_due(w, &t);
    return t ? t : volt__next_local(w);
}
// Runs the worker on the calling thread, its carrier, until the carrier must leave the loop.
static void volt__worker_run(volt__worker *w) {
    volt__task *t;
    w->cx.stack_ = (const char *)__builtin_frame_address(0);
    volt__carrier_check(w);
    VOLT_TLS_SET(w);
    if (w->is_guest) volt__guest_resume(w);
    t = volt__first_task(w); // at the start of volt_run: the root task
    if (t) volt__searching_done(w);
    else t = volt__wait_for_task(w);
    for (; t; t = volt__next_task(w, t)) volt__poll_task(w, t);
    volt__end_lifo_run(w);
    volt__remote_batch_flush(&w->remote_batch);
    volt__count_busy(w, VOLT_NOW_NS());
    volt__publish_stats(w);
    VOLT_TLS_SET((volt__worker *)NULL);
}

// The worker's own thread, which begins with ticket 0. If another thread waits for the carrier
// lock, this thread passes the lock on, acquires it again, and goes on.
static void volt__worker_main(volt__worker *w) {
    for (volt__worker_run(w); w->handoff_wanted; volt__worker_run(w)) {
        volt__carrier_release(w);
        volt__carrier_acquire(w);
        w->is_own_thread = 1;
    }
    // A late pool thread finds the runtime stopped. After a drain timeout it becomes the carrier.
    volt__carrier_release(w);
}

//==================================================================================================
// >>handoff  a worker whose thread blocks goes to another thread
//==================================================================================================
// The transfer of a worker to another carrier, while its carrier blocks in volt_block_in_place in
// the middle of a poll. The next carrier is a thread that waits for the carrier lock already, or
// else a pool thread.
//   - Between volt__handoff_begin, if that returns 1, and volt__handoff_end the blocked thread is
//     not the carrier: it must not use the worker, and counts as a plain thread. After that it is
//     the carrier again, and resumes its poll.
//   - A guest is never handed off, because its thread belongs to the application.
// volt__handoff_begin and volt__evict_local_tasks are called by the carrier, volt__handoff_end by
// the blocked thread, volt__handoff_main by a pool thread. No lock but the carrier lock is held.
#ifndef VOLT_SINGLE_THREAD
// The job of the pool thread: carries the worker until the loop ends. If another thread waits for
// the worker already, passes it on at once.
static void volt__handoff_main(void *worker) {
    volt__worker *w = (volt__worker *)worker;
    volt__carrier_acquire(w);
    w->is_own_thread = 0;
    if (!volt__carrier_is_contended(w)) volt__worker_run(w);
    volt__carrier_release(w);
}
// Returns 1 if the caller has released the worker, 0 if it remains the carrier, because the worker
// is a guest or no pool thread could be started. *job belongs to the pool until volt__handoff_end.
// If another thread waits for the worker already, that thread is next, and no job is submitted.
static int volt__handoff_begin(volt__worker *w, volt_job *job) {
    memset(job, 0, sizeof *job);
    job->run_ = volt__handoff_main;
    job->arg_ = w;
    job->lane_ = VOLT__LANE_HANDOFF;
    if (w->is_guest) return 0; // its thread is the application's
    if (!volt__carrier_is_contended(w) && volt__pool_submit(&w->rt->pool, job) < 0) return 0;
    w->stats.handoffs++;
    VOLT_TLS_SET((volt__worker *)NULL);
    volt__carrier_release(w);
    return 1;
}
// Makes the calling thread the carrier again.
static void volt__handoff_end(volt__worker *w, volt_job *job) {
    volt__pool *p = &w->rt->pool;
    volt__lock(&p->lock);
    (void)volt__pool_cancel(p, job); // no effect if the job has started or was not submitted
    volt__unlock(&p->lock);
    volt__carrier_acquire(w);
    // a thread that waits behind this one has unparked the worker, and the carrier in between may
    // have read that event
    volt__carrier_check(w);
    VOLT_TLS_SET(w);
    // this thread resumes its poll: the carrier in between may have left the worker searching
    volt__searching_done(w);
}
// Moves the tasks in the LIFO slot, the ring and the overflow queue to the injector, so that other
// workers run them. Called before the thread blocks without a handoff.
static void volt__evict_local_tasks(volt__worker *w) {
    volt__chain c;
    volt__task *t;
    volt__chain_init(&c);
    while ((t = volt__lifo_take(w)) != NULL || (t = volt__pop_ring(w)) != NULL)
        volt__chain_push(&c, t);
    volt__overflow_pop_all(&w->overflow, &c);
    if (c.head) volt__inject(w->rt, &c);
}
#endif

//==================================================================================================
// >>start  starting workers
//==================================================================================================
// The creation of workers and of their threads, one at a time, in the order of their index.
//   - One thread at a time has set is_starting, and creates a worker without holding a lock. Then
//     it publishes the worker by storing `started`, under start_lock.
//   - A published worker lives until the runtime is freed.
//   - After a shutdown has begun, no start begins. A worker whose start is in progress counts among
//     those that must acknowledge the shutdown.
// Any thread may call volt__start_next, and a worker volt__start_spare, under no lock. A new thread
// runs volt__thread_main. The other functions are called by the thread that has set is_starting, or
// by the one that creates or frees the runtime while no other thread uses it.

static void volt__worker_destroy(volt_rt *rt, volt__worker *w) {
    volt__reactor_deinit(&w->reactor);
    rt->cfg.alloc.free(rt->cfg.alloc.user, w, sizeof *w);
}
// Creates worker `index`, without a thread, and sets rt->workers[index]. Returns 0 and *out, or
// -errno.
static int volt__worker_create(volt_rt *rt, uint32_t index, volt__worker **out) {
    volt_allocator *a = &rt->cfg.alloc;
    volt__worker *w = (volt__worker *)a->alloc(a->user, sizeof *w, VOLT__CACHE_LINE_PAIR);
    if (!w) return -ENOMEM;
    memset(w, 0, sizeof *w);
    w->rt = w->cx.rt_ = rt;
    w->cx.worker_ = w;
    w->index = index;
    w->carrier_ticket = w->is_own_thread = 1; // its own thread holds ticket 0
    w->is_solo = rt->n_workers == 1;
    w->avg_ns = VOLT_POLL_NS;
    w->last_event_poll = w->busy_since = VOLT_NOW_NS();
    w->ms = volt__ms_floor(rt, w->last_event_poll);
    w->wheel.elapsed = volt__tick_floor(rt, w->last_event_poll);
    w->inject_batch = VOLT_INJECT_BATCH;
    w->inject_due = w->inject_every =
        volt__clamp32(VOLT_INJECT_NS / VOLT_POLL_NS, 1, VOLT_INJECT_MAX);
    w->event_due = w->event_every =
        volt__clamp32(VOLT_EVENT_NS / VOLT_POLL_NS, 1, rt->cfg.event_interval);
    volt__countdown_start(w);
    w->cx.budget_ = (uint16_t)rt->cfg.budget;
    memcpy(&w->fresh_cx, &w->cx.wait_, sizeof w->fresh_cx);
    w->wake_at = 2;
    w->housekeep_due = VOLT__HOUSEKEEP_EVERY;
    w->trim_ms = w->ms + VOLT__TRIM_MS;
    w->drain_deadline = VOLT_NEVER;
    w->needs_watchdog = 1;
    w->is_guest = rt->cfg.is_guest && index == 0;
    volt__random_seed(&w->random, rt->cfg.seed, index);
    volt__heap_init(&w->heap, &rt->slabs);
    int rc = volt__reactor_init(&w->reactor, index, rt->watchdog.fd);
    if (rc == 0 && w->is_guest) rc = volt__reactor_init_guest(&w->reactor);
    if (rc < 0) {
        volt__worker_destroy(rt, w);
        return rc;
    }
    volt__fds_attach(&rt->fds, index, w->reactor.epfd);
    rt->workers[index] = w;
    *out = w;
    return 0;
}
#ifdef VOLT_SINGLE_THREAD
static inline int volt__start_next(const volt_rt *rt) {
    (void)rt;
    return -ENOSYS;
}
static void volt__start_spare(volt_rt *rt) { (void)volt__start_next(rt); }
#else
static void *volt__thread_main(void *arg) {
    volt__worker *w = (volt__worker *)arg;
    char name[16] = "volt-";
    uint32_t n = w->index, at = 5, digits = 1;
    for (uint32_t x = n; x >= 10; x /= 10) digits++;
    for (uint32_t i = 0; i < digits; i++, n /= 10) name[at + digits - 1 - i] = (char)('0' + n % 10);
    volt__sys_name_thread(name);
    volt__worker_main(w);
    return NULL;
}
static int volt__thread_start(volt__worker *w) {
    // has_slept: before its first poll the new worker starts a spare if no worker is parked
    w->has_thread = w->has_slept = 1;
    return volt__thread_create(&w->thread, w->rt->cfg.stack_size, volt__thread_main, w);
}
// Creates worker `index` and its thread. Returns 0 or -errno.
static int volt__start_one(volt_rt *rt, uint32_t index) {
    volt__worker *w = NULL;
    VOLT_ASSERT(!rt->workers[index]);
    int rc = volt__worker_create(rt, index, &w);
    if (rc == 0) {
        rc = volt__thread_start(w);
        if (rc < 0) volt__worker_destroy(rt, w);
    }
    if (rc < 0) rt->workers[index] = NULL;
    return rc;
}
// Starts the next worker, unless all have been started or a shutdown has begun. If another thread
// is starting a worker, only sets start_wanted, and that thread then starts the next one, too: the
// new worker itself may ask for its successor before its own start is complete. Returns 0, also if
// it has started none, or -errno.
static int volt__start_next(volt_rt *rt) {
    int rc = 0;
    volt__lock(&rt->start_lock);
    rt->start_wanted = 1;
    while (rc == 0 && rt->start_wanted && !rt->is_starting && !rt->starts_closed &&
           rt->started < rt->n_workers) {
        uint32_t index = rt->started;
        rt->is_starting = 1;
        rt->start_wanted = 0;
        volt__unlock(&rt->start_lock);
        rc = volt__start_one(rt, index);
        volt__lock(&rt->start_lock);
        rt->is_starting = 0;
        if (rc == 0) volt__store_rel(&rt->started, index + 1); // [R1] with started
        // A shutdown that began during this start waits for an acknowledgement of the new worker,
        // but could not unpark it. If the start has failed, this thread acknowledges instead:
        // UINT32_MAX stands for -1.
        uint32_t is_closed = rt->starts_closed;
        volt__unlock(&rt->start_lock);
        if (is_closed && rc == 0) volt__reactor_unpark(&rt->workers[index]->reactor);
        if (is_closed && rc < 0) volt__shutdown_ack(rt, UINT32_MAX);
        volt__lock(&rt->start_lock);
    }
    volt__unlock(&rt->start_lock);
    return rc;
}
// Called by a worker before a poll. Starts a spare worker, since the watchdog needs a parked worker
// that it can wake. If that fails, the failure is logged, and the calling worker does not try again
// for a second. The time of its last event poll is exact enough for that.
static void volt__start_spare(volt_rt *rt) {
    volt__worker *w = VOLT_TLS_GET();
    if (w->last_event_poll < w->start_retry) return;
    int rc = volt__start_next(rt);
    if (rc == 0) return;
    w->start_retry = volt__time_add(w->last_event_poll, 1000000000);
    volt__log_no_thread(rt, rc);
}
#endif

//==================================================================================================
// >>guest  worker 0 carried by the application's own thread
//==================================================================================================
// A guest is worker 0 of a runtime with .is_guest, or of any runtime of volt_create under
// VOLT_SINGLE_THREAD. The thread that holds guest_lock carries it, for one step: a run of the loop
// of >>worker that ends when no task is left or max_polls are made. Between two steps the
// application waits on the guest's epoll instance, which is readable if there is work. Its states:
//   inside  A step is in progress.
//   parked  No task was left, so the guest has parked. It may have been claimed since.
//   left    The last step ended before that. The guest counts as awake.
//
//   from          event        to      done by                             and then
//   parked, left  step         inside  plain thread; others get -EBUSY     leaves the parked set
//   inside        no task      parked  holder of guest_lock                parks, sets timer_fd
//   inside        quota, stop  left    holder of guest_lock                writes the eventfd
//   parked        claim        parked  pusher                              writes the eventfd
//   parked, left  shutdown     inside  volt_shutdown, before its deadline  blocks in epoll_wait
// The tasks of a guest that was left, and those that are woken on it later, wait for the next step:
// the eventfd, which is readable, asks the application for one. The watchdog may rescue the tasks
// before that.
//
// All functions are called under guest_lock, except volt__guest_start, which is called before the
// guest is shared, and volt__guest_drain and volt__guest_drive, which take the lock. A function of
// >>public, volt_rt_deadline, reads guest_parked without the lock: between two steps only.

// Ends a step: makes the epoll instance readable unless the guest is parked, and releases
// guest_lock. LAST TOUCH of *w at the unlock: if the runtime has stopped, volt_destroy may free it.
static void volt__guest_leave(volt__worker *w) {
    if (!w->guest_parked) volt__reactor_unpark(&w->reactor);
    volt__unlock(&w->rt->guest_lock);
}
// Runs the guest for at most max_polls polls. Returns the number of polls made.
static uint32_t volt__guest_step(volt__worker *w, uint32_t max_polls) {
    w->quota = max_polls; // before volt__guest_resume starts the countdown
    volt__worker_run(w);
    return max_polls - w->quota;
}
// Called by volt_create. Parks the guest before its first step, so that the pusher of the first
// task claims it, which makes the epoll instance readable.
static void volt__guest_start(volt__worker *w) {
    w->guest_no_block = 1;
    volt__park(w);
    VOLT_ASSERT(w->guest_parked);
}
// Called by volt_shutdown. Makes steps that may block in epoll_wait, until the runtime has stopped
// or the deadline has passed. While another thread is inside, waits: that thread makes the steps.
static void volt__guest_drain(volt_rt *rt, volt_time deadline) {
    volt__worker *w = rt->workers[0];
    if (!volt__lock_until(&rt->guest_lock, deadline)) return;
    w->drain_deadline = deadline;
    w->guest_no_block = 0;
    while (!volt__is_stopped(rt) && !volt__drain_expired(w)) volt__guest_step(w, UINT32_MAX);
    w->guest_no_block = 1;
    w->drain_deadline = VOLT_NEVER;
    volt__guest_leave(w);
}
#ifdef VOLT_SINGLE_THREAD
// Called by volt_join_sync. Makes steps until t has ended or the deadline has passed, since no
// other thread can run t. Each step is bounded, so that a busy runtime does not hide the deadline.
static void volt__guest_drive(volt_rt *rt, volt__task *t, volt_time deadline) {
    volt__worker *w = rt->workers[0];
    struct pollfd p;
    p.fd = w->reactor.epfd;
    p.events = POLLIN;
    for (;;) {
        volt__lock(&rt->guest_lock);
        volt__guest_step(w, VOLT_EVENT_INTERVAL);
        volt__guest_leave(w);
        int64_t left = volt__time_left(deadline);
        if (volt__join_is_done(t) || left == 0) return;
        p.revents = 0;
        VOLT_SYS(poll, &p, 1, volt__epoll_ms(left));
    }
}
#else
#  define volt__guest_drive(rt_, t_, deadline_) ((void)0)
#endif

//==================================================================================================
// >>cpus  the CPUs that a runtime may use
//==================================================================================================
// The number of CPUs that the runtime may use, which is the default of .workers: the CPUs in the
// affinity mask of the calling thread, or fewer if the CPU quota of the process's cgroup is lower.
// All functions may be called by any thread; they share no state.
#ifdef VOLT_SINGLE_THREAD
static inline uint32_t volt__cpu_count(void) { return 1; }
#else
// ---- CPU quota of the cgroup
// Every path begins with `root`, which is "" except in tests. A file that cannot be read, or whose
// path is too long, means no limit.

// Writes root, "/sys/fs/cgroup", `len` characters of dir, and file to out. Returns the length of
// this path, or 0 if it does not fit.
static size_t volt__path(char *out, size_t cap, const char *root, const char *dir, size_t len,
                         const char *file) {
    size_t at = 0;
    for (; *root && at < cap; root++) out[at++] = *root;
    for (const char *c = "/sys/fs/cgroup"; *c && at < cap; c++) out[at++] = *c;
    for (size_t i = 0; i < len && at < cap; i++) out[at++] = dir[i];
    for (; *file && at < cap; file++) out[at++] = *file;
    if (at >= cap) return 0;
    out[at] = 0;
    return at;
}
// Reads at most cap - 1 bytes of a file as a string. Returns the length of the string, or 0 if the
// file is empty or cannot be read.
static size_t volt__read_text(const char *path, char *text, size_t cap) {
    int fd = VOLT_SYS(open, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t len = VOLT_SYS(read, fd, text, cap - 1);
    VOLT_SYS(close, fd);
    text[len > 0 ? len : 0] = 0;
    return len > 0 ? (size_t)len : 0;
}
// Reads up to two numbers, separated by spaces, from the beginning of a file. Returns the number of
// numbers read. "max" and "-1", which mean "no limit", do not count as numbers.
static uint32_t volt__read_numbers(const char *path, int64_t out[2]) {
    char text[64];
    uint32_t n = 0;
    if (volt__read_text(path, text, sizeof text) == 0) return 0;
    for (const char *c = text; *c && n < 2;) {
        int64_t x = 0;
        const char *from = c;
        while (*c >= '0' && *c <= '9' && x < INT64_MAX / 16) x = x * 10 + (*c++ - '0');
        if (c == from) break;
        out[n++] = x;
        while (*c == ' ') c++;
    }
    return n;
}
// Returns the quota in CPUs, rounded up, or 0 for no limit.
static uint32_t volt__quota_cpus(int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0) return 0;
    return volt__clamp32(quota / period + (quota % period != 0), 1, VOLT_MAX_WORKERS);
}
// cgroup v2: a file with "QUOTA PERIOD", in us, in the cgroup of the process and in each of its
// ancestors. The line "0::DIR" of /proc/self/cgroup names that cgroup; dir[0..len) is shortened by
// one component after each file. Returns the lowest limit, in CPUs, or 0 for no limit.
static uint32_t volt__quota_v2(const char *root) {
    char path[512], text[1024];
    uint32_t least = 0;
    size_t at = 0;
    // 20: room for the name that follows
    for (const char *c = root; *c && at < sizeof path - 20; c++) path[at++] = *c;
    memcpy(path + at, "/proc/self/cgroup", sizeof "/proc/self/cgroup");
    if (volt__read_text(path, text, sizeof text) == 0) return 0;
    const char *dir = strstr(text, "0::/");
    if (!dir) return 0;
    dir += 3;
    size_t len = strcspn(dir, "\n");
    for (;;) {
        int64_t n[2];
        if (len == 1) len = 0; // the path of the root group is "/"
        if (volt__path(path, sizeof path, root, dir, len, "/cpu.max") &&
            volt__read_numbers(path, n) == 2) {
            uint32_t cpus = volt__quota_cpus(n[0], n[1]);
            if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
        }
        if (len == 0) return least;
        while (len > 0 && dir[--len] != '/') {}
    }
}
// cgroup v1: two files, at the path under which a container sees those of its own cgroup. Returns
// the limit, in CPUs, or 0 for no limit.
static uint32_t volt__quota_v1(const char *root) {
    char path[512];
    int64_t quota[2], period[2];
    if (!volt__path(path, sizeof path, root, "", 0, "/cpu/cpu.cfs_quota_us")) return 0;
    if (volt__read_numbers(path, quota) != 1) return 0;
    if (!volt__path(path, sizeof path, root, "", 0, "/cpu/cpu.cfs_period_us")) return 0;
    return volt__read_numbers(path, period) == 1 ? volt__quota_cpus(quota[0], period[0]) : 0;
}
static uint32_t volt__quota(const char *root) {
    uint32_t cpus = volt__quota_v2(root);
    return cpus > 0 ? cpus : volt__quota_v1(root);
}
static uint32_t volt__cpu_count(void) {
    cpu_set_t set;
    long n = 0;
    CPU_ZERO(&set);
    if (VOLT_SYS(sched_getaffinity, 0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    // the mask cannot be read, for example because the system has more CPUs than fit into the set
    if (n < 1) n = VOLT_SYS(sysconf, _SC_NPROCESSORS_ONLN);
    uint32_t cpus = volt__clamp32(n, 1, VOLT_MAX_WORKERS), quota = volt__quota("");
    return quota > 0 ? volt__min32(cpus, quota) : cpus;
}
#endif

//==================================================================================================
// >>runtime  configuration, creation
//==================================================================================================
// The configuration, creation and release of a runtime. Its workers are created in >>start; the
// order of all steps is in volt_create, volt_run and volt_destroy, in >>public. The callers, which
// hold no lock:
//   volt__rt_create   any thread; other threads do not know the runtime yet
//   volt__start_more  the thread that creates the runtime, once worker 0 exists
//   volt__rt_free     the thread that creates the runtime, if a step fails; else the thread that
//                     destroys it, after all other threads have left it

// Copies *in to *c, or zeros if `in` is NULL; replaces each 0 that stands for a default; checks the
// result. This is the only place that sets defaults. Returns 0 or -EINVAL.
static int volt__config_resolve(const volt_config *in, volt_config *c) {
    memset(c, 0, sizeof *c);
    // A caller that was compiled with an older version passes a smaller size: the fields beyond it
    // get their defaults.
    size_t size = in && in->size != 0 ? in->size : sizeof *c;
    if (size < sizeof c->size || size > sizeof *c) return -EINVAL;
    if (in) memcpy(c, in, size);
    c->size = sizeof *c;
    if (c->workers == 0) c->workers = volt__cpu_count();
    if (c->reactors == 0) c->reactors = c->workers;
    if (c->budget == 0) c->budget = VOLT_BUDGET;
    if (c->event_interval == 0) c->event_interval = VOLT_EVENT_INTERVAL;
    if (c->stack_size == 0) c->stack_size = VOLT_STACK_SIZE;
    if (c->watchdog_us == 0) c->watchdog_us = VOLT_WATCHDOG_US;
    if (c->max_blocking_threads == 0) c->max_blocking_threads = VOLT_POOL_MAX;
    if (c->seed == 0) c->seed = VOLT_RANDOM();
    int is_valid = c->workers <= VOLT_MAX_WORKERS && c->reactors <= c->workers &&
                   c->budget <= UINT16_MAX && c->event_interval <= 1000000 &&
                   c->stack_size >= 65536 && c->watchdog_us >= 100 && c->start_all_workers <= 1 &&
                   c->is_guest <= 1 && (uint32_t)c->placement <= VOLT_PLACE_LEAST &&
                   c->drain_timeout >= 0 && c->slow_poll >= 0 && !c->alloc.alloc == !c->alloc.free;
    if (c->workers == 1) c->placement = VOLT_PLACE_SHARED; // there is no choice
    if (!c->alloc.alloc) {
        c->alloc.alloc = volt__sys_map;
        c->alloc.free = volt__sys_unmap;
        c->alloc.user = NULL;
    }
    return is_valid ? 0 : -EINVAL;
}

// Frees the runtime and its workers. All of their threads, and those of the pool, have ended. Also
// called for a runtime that was created only in part: pointers that are not set are NULL.
static void volt__rt_free(volt_rt *rt) {
    volt_allocator a = rt->cfg.alloc;
    volt__slabs_destroy(&rt->slabs); // before the workers, which contain their heaps
    for (uint32_t i = 0; rt->workers && i < rt->started; i++)
        volt__worker_destroy(rt, rt->workers[i]);
    volt__fds_destroy(&rt->fds, rt->n_workers);
    for (uint32_t i = 0; i < 2 * rt->n_pipes; i++) VOLT_SYS(close, rt->pipes[i / 2].fd[i % 2]);
    if (rt->watchdog.fd >= 0) VOLT_SYS(close, rt->watchdog.fd);
    if (rt->fork_word) volt__sys_unmap(NULL, rt->fork_word, sizeof *rt->fork_word);
    if (rt->workers) a.free(a.user, rt->workers, sizeof(volt__worker *) * rt->n_workers);
    a.free(a.user, rt, sizeof *rt);
}
// Creates a runtime without workers. Returns 0 or -errno.
static int volt__rt_create(const volt_config *in, volt_rt **out) {
    volt_config cfg;
    int rc = volt__config_resolve(in, &cfg);
    if (rc < 0) return rc;
    volt_allocator *a = &cfg.alloc;
    volt_rt *rt = (volt_rt *)a->alloc(a->user, sizeof *rt, VOLT__CACHE_LINE_PAIR);
    if (!rt) return -ENOMEM;
    memset(rt, 0, sizeof *rt);
    rt->cfg = cfg;
    rt->epoch = VOLT_NOW_NS();
    rt->fork_word = VOLT_FORK_WORD();
    rt->pid = VOLT_GETPID();
#ifdef VOLT_SINGLE_THREAD
    rt->thread = VOLT_SYS(syscall, SYS_gettid);
#endif
    rt->n_workers = cfg.workers;
    rt->watchdog.fd = -1;
    rt->slabs.alloc = cfg.alloc;
    rt->slabs.rt = rt;
#ifndef VOLT_SINGLE_THREAD
    volt__membarrier_prepare();
    volt__pool_init(&rt->pool, &cfg);
#endif
    volt__idle_init(&rt->idle, cfg.workers);
    for (int i = 0; i < VOLT__OUTSIDE_HEAPS; i++)
        volt__heap_init(&rt->outside_heaps[i], &rt->slabs);
    rt->workers = (volt__worker **)a->alloc(a->user, sizeof(volt__worker *) * cfg.workers,
                                      VOLT__CACHE_LINE);
    if (rt->workers) memset(rt->workers, 0, sizeof(volt__worker *) * cfg.workers);
    rc = rt->workers ? volt__fds_init(&rt->fds, &cfg) : -ENOMEM;
    if (rc == 0 && cfg.workers > 1 && cfg.watchdog_us != UINT32_MAX)
        rc = volt__watchdog_init(&rt->watchdog, cfg.watchdog_us);
    if (rc < 0) {
        volt__rt_free(rt);
        return rc;
    }
    *out = rt;
    return 0;
}
// Starts worker 1, as a spare, or all workers with .start_all_workers. A failure is logged: the
// runtime works with fewer. Stops early if another thread is starting a worker or a shutdown has
// begun: volt__start_next then returns 0 without having started one.
static void volt__start_more(volt_rt *rt) {
    uint32_t want = rt->cfg.start_all_workers ? rt->n_workers : volt__min32(2, rt->n_workers);
    while (volt__started(rt) < want) {
        uint32_t before = volt__started(rt);
        int rc = volt__start_next(rt);
        if (rc < 0) volt__log_no_thread(rt, rc);
        if (rc < 0 || volt__started(rt) == before) return;
    }
}

//==================================================================================================
// >>spawn  spawning, handles, wakers
//==================================================================================================
// The start of a task, and the handles and wakers that refer to it. A spawn fills a slot, publishes
// the task by storing its word, and admits it: it counts and enqueues the task, or refuses it.
//   - From the store of the word on, a walker may visit the task, and the sweep of a shutdown may
//     retain it.
//   - The handle is set before the task can run. A handle holds a reference, and so does a waker.
//   - A spawn is counted before its task can run, so that no end is counted before its spawn.
//   - After a shutdown has begun, spawns are refused with -ESHUTDOWN: by each worker from its
//     acknowledgement on, by the injector and the inboxes once they are closed.
// An argument `w` is the worker of rt that the calling thread carries, or NULL if there is none.
// volt_spawn, volt_spawn_at and volt_waker_retain are called in a poll, volt_join_sync by plain
// threads, the other public functions by any thread. A handle is used by one thread at a time. No
// lock of the runtime is held.

// ---- spawn

// Sets the fields of a new task that its first poll and a dump read, except the word and spawn_ms.
static inline void volt__task_fill(volt__task *t, volt_fn *fn, uint8_t flags, const char *site) {
    if (VOLT_DEBUG && !fn) volt__misuse(site, "spawn: the function is NULL");
    t->u.fn = fn;
    volt__store_rlx(&t->spawn_site, site); // rlx: for dumps
    volt__store_rlx(&t->wait_site, site); // rlx: for dumps
    t->shield_depth = 0;
    t->flags = flags;
    t->n_armed = 0;
}
// Called before the task can run, since the task may use the handle itself, and its runner reads
// the flags.
static inline void volt__task_attach_handle(volt__task *t, volt_handle *h) {
    t->flags |= VOLT__HAS_HANDLE;
    t->join = NULL;
    h->task_ = t;
}
// The task is NOTIFIED, so no wake-up enqueues it: the spawn or volt_task_start does.
static inline void volt__task_publish(volt__task *t, uint32_t refs) {
    volt__store_rel(&t->word, VOLT__NOTIFIED + refs * VOLT__REF); // [M2] with try_retain
}
static volt__task *volt__alloc_outside(volt_rt *rt, size_t bytes) {
    // spreads the threads over the heaps: their stacks differ in the upper bits of the address
    void *frame = __builtin_frame_address(0);
    uintptr_t stack = (uintptr_t)frame >> 16;
    return volt__heap_alloc_shared(&rt->outside_heaps[stack % VOLT__OUTSIDE_HEAPS], bytes);
}
// Returns an uninitialized slot for `size` bytes of state and `extra` bytes after it, from the heap
// of w, or from an outside heap if w is NULL. Returns NULL if out of memory.
static volt__task *volt__task_alloc(volt_rt *rt, volt__worker *w, size_t size, size_t extra) {
    size_t bytes = sizeof(volt__task) + ((size + 15) & ~(size_t)15) + extra;
    if (size > SIZE_MAX / 2) return NULL;
    return w ? volt__heap_alloc(&w->heap, bytes) : volt__alloc_outside(rt, bytes);
}
// Returns 1 if the state is a frame and 0, 8 or 16 bytes. Most states are: for them, a call of
// memcpy would cost more than the copy.
static inline int volt__is_small_state(size_t size) {
    size_t n = size - sizeof(volt_frame); // wraps if size is less than a frame
    return n <= 16 && n % 8 == 0;
}
// The source was just written, field by field. A load of 8 bytes that spans two of these stores
// would stall until both are in the cache; loads of 4 bytes are forwarded from the stores.
static inline void volt__copy_8(char *to, const char *from) {
    memcpy(to, from, 4);
    memcpy(to + 4, from + 4, 4);
}
// Copies the state of a new task. The frame of *from is known to be zero and is not read.
static inline void volt__state_copy(void *to, const void *from, size_t size) {
    char *d = (char *)to + sizeof(volt_frame);
    const char *f = (const char *)from + sizeof(volt_frame);
    size_t n = size - sizeof(volt_frame);
    memset(to, 0, sizeof(volt_frame));
    if (VOLT__UNLIKELY(!volt__is_small_state(size))) {
        memcpy(d, f, n);
        return;
    }
    if (n >= 8) volt__copy_8(d, f);
    if (n > 8) volt__copy_8(d + 8, f + 8);
}
// Releases the `refs` references of a task that was published and then refused. Frees the task,
// unless the sweep of a shutdown has retained it: then the sweep frees it.
static void volt__task_refuse(volt__task *t, uint32_t refs) {
    uintptr_t old = volt__sub_acq_rel(&t->word, refs * VOLT__REF); // [T2] with release
    if (old < (refs + 1) * VOLT__REF) volt__task_free(t);
}
// Counts a published task with `refs` references, and enqueues it if is_enqueued. Called by threads
// that are not workers of rt. The pin keeps the runtime alive, because the task may run and end as
// soon as it is enqueued. Returns 0, or -ESHUTDOWN if the task was refused.
static int volt__admit_outside(volt_rt *rt, volt__task *t, uint32_t refs, int is_enqueued) {
    // rlx: for dumps
    volt__store_rlx(&t->spawn_ms, (uint32_t)volt__ms_floor(rt, VOLT_NOW_NS()));
    volt__rt_pin(rt);
    if (is_enqueued) volt__trace_wake(rt, NULL, t);
    int place = is_enqueued ? volt__place(rt) : VOLT__ANY_WORKER;
    int ok = volt__injector_spawn(volt__placement_queue(rt, place), is_enqueued ? t : NULL);
    if (ok && is_enqueued) volt__wake_worker_preferring(rt, place);
    volt__rt_unpin(rt);
    if (ok) return 0;
    volt__task_refuse(t, refs);
    return -ESHUTDOWN;
}
// The same by w, which is not closing, so the task is not refused.
static inline void volt__admit(volt__worker *w, volt__task *t, int is_enqueued) {
    volt__store_rlx(&t->spawn_ms, (uint32_t)w->ms); // rlx: for dumps
    if (is_enqueued) volt__trace_wake(w->rt, w, t);
    volt__store_rel(&w->spawned, w->spawned + 1); // [S2] with alive
    if (is_enqueued) volt__push_runnext(w, t, 1);
}
static int volt__admit_or_refuse(volt__worker *w, volt__task *t, uint32_t refs, int is_enqueued) {
    if (w->is_closing) {
        volt__task_refuse(t, refs);
        return -ESHUTDOWN;
    }
    volt__admit(w, t, is_enqueued);
    return 0;
}
static int volt__admit_task(volt_rt *rt, volt__worker *w, volt__task *t, uint32_t refs,
                            int is_enqueued) {
    return w ? volt__admit_or_refuse(w, t, refs, is_enqueued)
             : volt__admit_outside(rt, t, refs, is_enqueued);
}
// Returns 1 if the frame at the start of the state is zero; 0 if not, or if the state is smaller.
static inline int volt__frame_is_zero(const void *state, size_t size) {
    const volt__node *node = (const volt__node *)state;
    uint64_t head; // the fields before key_
    if (VOLT__UNLIKELY(size < sizeof *node)) return 0;
    memcpy(&head, node, sizeof head);
    uintptr_t pointers = (uintptr_t)node->next_ | (uintptr_t)node->prev_ |
                         (uintptr_t)node->waiter_ |
                         (uintptr_t)node->source_;
    return (head | (uint64_t)node->key_.any_ | pointers) == 0;
}
// Returns 1 if the state may be spawned. Logs the reason if not, because the caller sees only
// -EINVAL.
static inline int volt__spawn_is_valid(const volt_rt *rt, const void *state, size_t size,
                                       const char *site) {
    if (VOLT__LIKELY(volt__frame_is_zero(state, size))) return 1;
    volt__log(rt, VOLT_LOG_FRAME_NOT_ZERO, site);
    return 0;
}
static inline void volt__spawn_fill(volt__task *t, volt_handle *h, volt_fn *fn, const void *state,
                                    size_t size, const char *site) {
    volt__state_copy(volt__task_state(t), state, size);
    volt__task_fill(t, fn, 0, site);
    if (h) volt__task_attach_handle(t, h);
    volt__task_publish(t, h ? 2 : 1);
}
static __attribute__((noinline)) int volt__spawn(volt_rt *rt, volt__worker *w, volt_handle *h,
                                                 volt_fn *fn, const void *state, size_t size,
                                                 const char *site) {
    if (!volt__spawn_is_valid(rt, state, size, site)) return -EINVAL;
    if (!w && volt__is_forked_child(rt)) return -ECHILD;
    volt__task *t = volt__task_alloc(rt, w, size, 0);
    if (!t) return -ENOMEM;
    volt__spawn_fill(t, h, fn, state, size, site);
    int rc = volt__admit_task(rt, w, t, h ? 2 : 1, 1);
    if (rc < 0 && h) h->task_ = NULL;
    return rc;
}
// The fast path for a small state and a free slot of the current slab, inlined as a whole because
// spawning is hot in many programs. All other spawns take volt__spawn.
VOLT_API int volt_spawn_at(volt_cx *cx, volt_handle *h, volt_fn *fn, const void *state, size_t size,
                           const char *site) {
    volt__worker *w = cx->worker_;
    volt__task *t = NULL;
    if (VOLT__LIKELY(volt__is_small_state(size) && !w->is_closing &&
                     volt__frame_is_zero(state, size)))
        t = volt__heap_alloc_fast(&w->heap, sizeof *t + size);
    if (VOLT__UNLIKELY(!t)) return volt__spawn(w->rt, w, h, fn, state, size, site);
    volt__spawn_fill(t, h, fn, state, size, site);
    volt__admit(w, t, 1);
    return 0;
}
VOLT_API int volt_spawn(volt_cx *cx, volt_handle *h, volt_fn *fn, const void *state, size_t size) {
    return volt_spawn_at(cx, h, fn, state, size, "volt_spawn");
}
VOLT_API int volt_rt_spawn_at(volt_rt *rt, volt_handle *h, volt_fn *fn, const void *state,
                              size_t size, const char *site) {
    return volt__spawn(rt, volt__current_worker(rt), h, fn, state, size, site);
}
VOLT_API int volt_rt_spawn(volt_rt *rt, volt_handle *h, volt_fn *fn, const void *state,
                           size_t size) {
    return volt__spawn(rt, volt__current_worker(rt), h, fn, state, size, "volt_rt_spawn");
}
// Spawns the task of volt_run or volt_block_on. The state remains the caller's: the slot only holds
// a pointer to it. Returns 0 or -errno.
static int volt__spawn_root(volt_rt *rt, volt__worker *w, volt_handle *h, volt_fn *fn, void *state,
                            uint8_t flags) {
    uint8_t all = (uint8_t)(VOLT__EXTERNAL | flags);
    if (!volt__spawn_is_valid(rt, state, sizeof(volt_frame), "root task")) return -EINVAL;
    if (!w && volt__is_forked_child(rt)) return -ECHILD;
    volt__task *t = volt__task_alloc(rt, w, sizeof state, 0);
    if (!t) return -ENOMEM;
    memcpy(volt__task_state(t), &state, sizeof state);
    volt__task_fill(t, fn, all, "root task");
    uint32_t refs = h ? 2 : 1;
    if (h) volt__task_attach_handle(t, h);
    volt__task_publish(t, refs);
    return volt__admit_task(rt, w, t, refs, 1);
}

VOLT_API void *volt_task_create(volt_rt *rt, volt_fn *fn, size_t size) {
    volt__worker *w = volt__current_worker(rt);
    if (size < sizeof(volt_frame) || (!w && volt__is_forked_child(rt))) return NULL;
    volt__task *t = volt__task_alloc(rt, w, size, 0);
    if (!t) return NULL;
    memset(volt__task_state(t), 0, size);
    volt__task_fill(t, fn, 0, "volt_task_create");
    volt__store_rlx(&t->wait_ms, 0u); // rlx: for volt_health; not the stamp of the slot's last task
    volt__task_publish(t, 1); // NOTIFIED is set, so a wake-up before the start does not enqueue it
    return volt__admit_task(rt, w, t, 1, 0) < 0 ? NULL : volt__task_state(t);
}
VOLT_API void volt_task_start(void *state, volt_handle *handle_or_null) {
    volt__task *t = volt__state_task(state);
    if (!volt__frame_is_zero(state, sizeof(volt_frame)))
        volt__misuse_current("volt_task_start: frame not zeroed, after this line");
    if (handle_or_null) {
        volt__task_attach_handle(t, handle_or_null);
        volt__task_retain(t);
    }
    volt__schedule(t);
}
// Frees a task that was never started, and counts its end after that. It may be the last task: the
// pin then keeps the runtime alive until the end of the call.
VOLT_API void volt_task_destroy(void *state) {
    volt__task *t = volt__state_task(state);
    volt_rt *rt = volt__slab_of(t)->rt;
    volt__rt_pin(rt);
    volt__task_drop(t);
    volt__lock(&rt->injector.lock);
    rt->n_destroyed_outside++;
    volt__unlock(&rt->injector.lock);
    if (volt__load_acq(&rt->is_closed)) volt__unpark_all(rt); // [S1] it may be the last task
    volt__rt_unpin(rt);
}

// ---- handles and wakers

static int64_t volt__handle_take_result(volt_handle *h) {
    VOLT_ASSERT(volt__join_is_done(h->task_));
    int64_t result = h->task_->u.result;
    volt__task_drop(h->task_);
    h->task_ = NULL;
    return result;
}
VOLT_API int volt_try_join(volt_handle *h, int64_t *result) {
    if (!h->task_) return -EINVAL;
    if (!volt__join_is_done(h->task_)) return -EAGAIN;
    int64_t value = volt__handle_take_result(h);
    if (result) *result = value;
    return 0;
}
// Under VOLT_SINGLE_THREAD volt__guest_drive does the waiting, and the parker then times out at
// once. With threads volt__guest_drive is empty.
VOLT_API int volt_join_sync(volt_handle *h, volt_time at_most, int64_t *result) {
    volt__parker p;
    p.is_set = 0;
    if (!h->task_) return -EINVAL;
    if (VOLT_TLS_GET()) return -EDEADLK;
    if (volt__is_forked_child(volt__slab_of(h->task_)->rt)) return -ECHILD;
    volt__guest_drive(volt__slab_of(h->task_)->rt, h->task_, volt__deadline(at_most));
    void *waiter = (void *)((uintptr_t)&p | VOLT__JOIN_PARKER);
    if (volt__join_register(h->task_, waiter)) {
        volt_time deadline = volt__deadline(at_most);
        if (volt__parker_wait(&p, deadline) < 0) {
            if (volt__join_unregister(h->task_, waiter)) return -ETIMEDOUT;
            volt__parker_wait(&p, VOLT_NEVER); // the task has ended, and its runner sets p
        }
    }
    int64_t value = volt__handle_take_result(h);
    if (result) *result = value;
    return 0;
}
VOLT_API void volt_cancel(const volt_handle *h) {
    if (h->task_ && volt__task_cancel(h->task_)) volt__schedule(h->task_);
}
VOLT_API void volt_detach(volt_handle *h) {
    if (h->task_) volt__task_drop(h->task_);
    h->task_ = NULL;
}
VOLT_API volt_waker volt_waker_retain(const volt_cx *cx) {
    volt_waker w;
    w.task_ = cx->task_;
    w.task_->flags |= VOLT__GAVE_WAKER;
    volt__task_retain(w.task_);
    return w;
}
VOLT_API void volt_wake(volt_waker w) {
    if (volt__task_wake(w.task_)) volt__schedule(w.task_);
}
VOLT_API void volt_waker_release(volt_waker w) { volt__task_drop(w.task_); }

//==================================================================================================
// >>leaf  the contract of a leaf, and the wait that all primitives share
//==================================================================================================
// The steps that every leaf follows, and wait ops: the waits of tasks and of blocked threads on
// locks, waitwords and channels. The node of a leaf, whose key_ holds its progress, is that of the
// awaiting frame or arm, cx->frame_. Only a call on the pool and a lookup have memory besides. A
// leaf runs inside a poll of its task, on the worker that runs the task. At each poll it goes
// through these steps in order:
//   1. Budget: it charges one unit, even if it then gives -ECANCELED. If no unit is left, it is
//      pending and the task is enqueued again.
//   2. Cancelled (shield depth < cancel level): it unlinks its node, or passes its grant on, and
//      gives -ECANCELED. An operation that can no longer be undone gives its result instead, or
//      waits on: a rendezvous, a barrier that has opened, a job that has begun.
//   3. Still linked: it is pending and takes no lock. Only a last try (>>time) and an arm that has
//      been claimed (>>chan) go on to step 4.
//   4. Not linked: it tries the operation. If its node was fired, it takes the lock of its source
//      first: the thread that fired the node may still hold that lock and use the source.
//   5. The operation would block: it links its node under the lock, after a last check.
//   6. Pending: it returns the unit of step 1.
// A join uses the child's join word in place of a lock and a list.

// The kinds of leaf: kind_ of the awaiting frame or arm, the wait that a dump shows, and whether it
// has a descriptor to show. A new kind is one line here, and its row in examples/gdb/volt.py. One
// that waits on an object with a lock and a list is a wait op, with an attempt and an abandon.
#define VOLT__LEAVES(X_)       \
    X_(TIMER, "timer", 0)      \
    X_(FOREVER, "forever", 0)  \
    X_(JOIN, "join", 0)        \
    X_(RD, "readable", 1)      \
    X_(WR, "writable", 1)      \
    X_(CONNECT, "connect", 1)  \
    X_(BACKOFF, "back-off", 1) \
    X_(TOKEN, "token", 0)      \
    X_(GROUP, "group", 0)      \
    X_(JOB, "blocking", 0)     \
    X_(NAME, "name", 0)        \
    X_(LOCK, "lock", 0)        \
    X_(EVENT, "event", 0)      \
    X_(CHAN, "channel", 0)
#define VOLT__LEAF_KIND(name_, text_, has_fd_) VOLT__LEAF_##name_,
enum { VOLT__LEAF_BEFORE_FIRST = VOLT__LEAF - 1, VOLT__LEAVES(VOLT__LEAF_KIND) };
#undef VOLT__LEAF_KIND

static inline int volt__scope_is_cancelled(const volt_cx *cx) {
    return cx->shield_depth_ < cx->cancel_level_;
}
// From here on, awaits at this shield depth and at lower ones are cancelled. A level that is higher
// already stays.
static void volt__raise_cancel_level(volt_cx *cx, uint8_t depth) {
    if (cx->cancel_level_ > depth) return;
    cx->cancel_level_ = (uint8_t)(depth + 1);
    cx->budget_at_cancel_ = cx->budget_;
}
// Returns the node of the awaiting frame or arm. The first poll of an await sets it up.
static inline volt__node *volt__leaf(volt_cx *cx, uint8_t kind) {
    volt__node *node = cx->frame_;
    VOLT__EXPECT_CX(cx, cx->is_awaiting_, "wait called outside VOLT_AWAIT, after this line");
    VOLT__REQUIRE_CX(cx, node != NULL, "wait called by a function without VOLT_BEGIN");
    if (node->kind_ == VOLT__FRESH) {
        VOLT_ASSERT(volt__node_state(node) == VOLT__IDLE);
        node->kind_ = kind;
        node->key_.any_ = 0;
    }
    VOLT__REQUIRE_CX(cx, node->kind_ == kind, "two polls in one await: use VOLT_ARM");
    return node;
}
// Enqueues the task again. A cancelled task that has spent at least half a budget in this poll
// since the cancel level was raised seems to ignore -ECANCELED: it is logged, once.
static __attribute__((noinline, cold)) void volt__budget_exhausted(volt_cx *cx) {
    volt__task *t = cx->task_;
    (void)volt__task_wake(t); // it is RUNNING, so its worker enqueues it
    if (!volt__scope_is_cancelled(cx) || cx->budget_at_cancel_ < cx->rt_->cfg.budget / 2) return;
    if (t->flags & VOLT__WAS_LOGGED) return;
    t->flags |= VOLT__WAS_LOGGED;
    volt__log(cx->rt_, VOLT_LOG_IGNORES_CANCEL, t->wait_site);
}
// Returns 1 if a unit was charged. Returns 0 if none was left: the leaf is then pending, and the
// task is enqueued again.
static inline int volt__budget_charge(volt_cx *cx) {
    if (VOLT__UNLIKELY(cx->budget_ == 0)) {
        volt__budget_exhausted(cx);
        return 0;
    }
    cx->budget_--;
    return 1;
}
// Step 1 of a leaf. Returns its node, or NULL if no unit was left: the leaf is then pending.
static inline volt__node *volt__leaf_begin(volt_cx *cx, uint8_t kind) {
    volt__node *node = volt__leaf(cx, kind);
    return volt__budget_charge(cx) ? node : NULL;
}
// For fast paths. Returns 1 at the first poll of a leaf that is in budget and not cancelled. If the
// operation completes at once, the caller charges the unit itself and never touches the node.
static inline int volt__leaf_is_fresh(const volt_cx *cx) {
    const volt__node *node = cx->frame_;
    if (VOLT_DEBUG && !cx->is_awaiting_) return 0; // volt__leaf reports it
    return node && node->kind_ == VOLT__FRESH && cx->budget_ > 0 && !volt__scope_is_cancelled(cx);
}
// Ends the leaf with a result. Its node is IDLE.
static inline volt_poll volt__leaf_ready(volt__node *node, int64_t value) {
    VOLT_ASSERT(volt__node_state(node) == VOLT__IDLE && value != VOLT__PENDING);
    node->kind_ = VOLT__FRESH;
    return volt_ready(value);
}
// Step 6. For dumps, it records the kind of the wait and `arg`: the descriptor, or 0.
static inline volt_poll volt__leaf_pending(volt_cx *cx, const volt__node *node, uint32_t arg) {
    VOLT_ASSERT(node->kind_ >= VOLT__LEAF);
    cx->budget_++;
    cx->wait_ &= VOLT__REQUEUE; // keep a yield of another arm
    cx->wait_ |= (uint32_t)node->kind_ << 24 | (arg & 0xffffff);
    return volt_pending();
}

// The rare cases of volt_yield: the await is cancelled, or volt__leaf reports misuse.
VOLT_API volt_poll volt__yield(volt_cx *cx) {
    volt__node *node = volt__leaf_begin(cx, VOLT__YIELD);
    VOLT_ASSERT(volt__scope_is_cancelled(cx));
    return node ? volt__leaf_ready(node, -ECANCELED) : volt_pending();
}
VOLT_API volt_poll volt_sleep_forever(volt_cx *cx) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_FOREVER);
    if (!node) return volt_pending();
    return volt__scope_is_cancelled(cx) ? volt__leaf_ready(node, -ECANCELED)
                                        : volt__leaf_pending(cx, node, 0);
}
// cx->cancel_level_ dates from the start of the poll. The task's word and is_closed are read here,
// so that a loop without awaits sees a cancellation or a shutdown that begins while it runs. The
// next await then sees it, too.
VOLT_API int volt_is_cancelled(volt_cx *cx) {
    uintptr_t word = volt__load_rlx(&cx->task_->word); // rlx: a flag that publishes nothing
    uint32_t is_closed = volt__load_rlx(&cx->rt_->is_closed); // rlx: a flag that publishes nothing
    if ((word & VOLT__CANCELLED) || is_closed) volt__raise_cancel_level(cx, 0);
    return volt__scope_is_cancelled(cx);
}

// ---- wait ops
// A task or a blocked thread waits on an object that has a lock and a list of waiters. A thread
// that fires a node only grants something, or asks the waiter to retry. The waiter completes its
// wait itself, in its next step under the lock; if it is cancelled before, that step passes the
// grant on. There are two exceptions: the second party of a rendezvous (>>chan) completes both
// waits, and a barrier that has opened ends its waits even if they are cancelled.
//
// A caller that is let through may free the object, if no other caller will use it. Therefore:
//   - Each waiter that was fired takes the lock once before it returns: by then the thread that
//     fired it has released the lock, and does not use the object any more.
//   - A change that may let a caller through without a wait, such as a release, is the LAST TOUCH
//     of the object. But a thread that changes the object and fires a waiter under one hold of the
//     lock may use the object until it unlocks: that waiter is not through before.
// Nodes are fired under the lock; wake lists run without it. volt__wait_op_poll is called inside a
// poll of the waiting task, volt__wait_op_sync on a thread that carries no worker.

// Further states of a node. RETRY: nothing is granted, the waiter tries again; in >>waitword it is
// the grant of volt_notify_last. TRANSFERRED: a rendezvous has copied the message.
enum { VOLT__RETRY = VOLT__CLOSED + 1, VOLT__TRANSFERRED };
// Flags in shield_base_ of an arm's node; the node of a frame has neither. IN_SELECT: the await is
// a select. CLAIMED: the select has been claimed for this arm.
enum { VOLT__IN_SELECT = 1, VOLT__CLAIMED = 2 };

typedef struct volt__thread_waiter {
    volt__node node; // waiter_ points to this struct, tagged
    volt__parker parker;
} volt__thread_waiter;
#define VOLT__WAITER_IS_THREAD ((uintptr_t)1) // tag in waiter_: a volt__thread_waiter

// The waiters that one event fires: collected under the lock, woken after it.
typedef struct volt__wake_list {
    volt__chain chain;        // tasks to enqueue
    volt__node *first, *last; // blocked threads
} volt__wake_list;
static void volt__wake_list_init(volt__wake_list *w) {
    volt__chain_init(&w->chain);
    w->first = w->last = NULL;
}
// Called under lock, right after the node was unlinked. LAST TOUCH of a task's node, as in
// volt__node_fire. A thread's node stays valid until its parker is set: until then, next_ links it
// into the wake list.
static void volt__wake_list_fire(volt__wake_list *w, volt__node *node, uint8_t state) {
    if (!((uintptr_t)node->waiter_ & VOLT__WAITER_IS_THREAD)) {
        volt__node_fire(node, state, &w->chain);
        return;
    }
    volt__node_set(node, state);
    node->next_ = NULL;
    if (w->last) w->last->next_ = node;
    else w->first = node;
    w->last = node;
}
static void volt__wake_list_fire_first(volt__wake_list *w, volt__node **list, uint8_t state) {
    volt__node *node = *list;
    VOLT_ASSERT(volt__node_state(node) == VOLT__LINKED);
    volt__list_remove(list, node);
    volt__wake_list_fire(w, node, state);
}
static void volt__wake_list_fire_all(volt__wake_list *w, volt__node **list, uint8_t state) {
    while (*list) volt__wake_list_fire_first(w, list, state);
}
// Called without the lock. Setting the parker is the LAST TOUCH of a thread's node.
static __attribute__((noinline)) void volt__wake_list_run(volt__wake_list *w) {
    for (volt__node *node = w->first, *next; node; node = next) {
        next = node->next_;
        uintptr_t waiter = (uintptr_t)node->waiter_ - VOLT__WAITER_IS_THREAD;
        volt__parker_set(&((volt__thread_waiter *)waiter)->parker);
    }
    volt__schedule_chain(&w->chain);
}
static inline void volt__wake_list_run_if_any(volt__wake_list *w) {
    if (w->first || w->chain.head) volt__wake_list_run(w);
}
// Called under lock, if the list is not empty. Fires the first waiter and releases the lock. For
// events that fire no other waiter: a task then needs no wake list.
static void volt__fire_first_and_unlock(volt__node **list, uint8_t state, uint32_t *lock) {
    volt__wake_list wakes;
    volt__node *node = *list;
    if (VOLT__UNLIKELY((uintptr_t)node->waiter_ & VOLT__WAITER_IS_THREAD)) {
        volt__wake_list_init(&wakes);
        volt__wake_list_fire_first(&wakes, list, state);
        volt__unlock(lock);
        volt__wake_list_run(&wakes);
        return;
    }
    volt__task *t = volt__node_task(node);
    VOLT_ASSERT(volt__node_state(node) == VOLT__LINKED);
    volt__list_remove(list, node);
    volt__node_set(node, state);
    int must_enqueue = volt__task_wake(t);
    volt__unlock(lock); // LAST TOUCH
    if (must_enqueue) volt__schedule(t);
}

typedef struct volt__wait_op volt__wait_op;
typedef int64_t volt__wait_op_fn(const volt__wait_op *op, volt__node *node, uint8_t was,
                                 volt__wake_list *wakes);
struct volt__wait_op {
    // the object that is waited on
    void *on;
    // its lock
    uint32_t *lock;
    // its list of waiters, under lock
    volt__node **waiters;
    // Called under lock, with a node that is IDLE. `was` is the state before the step: IDLE, or the
    // one with which the node was fired. Returns the result, or VOLT__PENDING after it has linked
    // the node.
    volt__wait_op_fn *attempt;
    // The same for a wait that is cancelled or timed out. `was`: LINKED, or the state with which
    // the node was fired. Returns the result; if `was` is LINKED, that is -ECANCELED.
    volt__wait_op_fn *abandon;
    // an argument of attempt, such as the messages to send or the space for those to receive
    void *data;
    // n: number of permits or messages; the value at which a waitword is open; the count that
    // volt_notify_wait_past was given. mask: `invert` of a sema, or the bits of a waitword that are
    // compared
    uint32_t n, mask;
    // the waiting task; NULL: a blocked thread
    volt__task *task;
    // 1: the caller has taken the lock, for a wait that is neither cancelled nor linked. The step
    // releases it
    int has_lock;
};
static void volt__wait_op_init(volt__wait_op *op, void *on, uint32_t *lock, volt__node **waiters,
                               volt__wait_op_fn *attempt, volt__wait_op_fn *abandon) {
    memset(op, 0, sizeof *op);
    op->on = on;
    op->lock = lock;
    op->waiters = waiters;
    op->attempt = attempt;
    op->abandon = abandon;
}
// Called under lock. Links the node at the tail of the list, or at the head if `is_first`: the list
// is circular, so its tail becomes its head when *op->waiters moves back by one.
static void volt__wait_op_link(const volt__wait_op *op, volt__node *node, int is_first) {
    if (op->task) {
        volt__node_bind(node, op->task, op->on);
    } else {
        node->source_ = op->on;
        volt__node_set(node, VOLT__LINKED);
    }
    volt__list_push(op->waiters, node);
    if (is_first) *op->waiters = node;
}
// The abandon function of waits that are granted nothing.
static int64_t volt__abandon_nothing(const volt__wait_op *op, volt__node *node, uint8_t was,
                                     volt__wake_list *wakes) {
    (void)op, (void)node, (void)was, (void)wakes;
    return -ECANCELED;
}
// One step of a wait: takes the lock, unlinks and unbinds the node, and calls attempt, or abandon
// if the wait is cancelled. Returns the result, or VOLT__PENDING if the node is linked. The unlock
// is the LAST TOUCH of the object.
static int64_t volt__wait_op_step(const volt__wait_op *op, volt__node *node, int is_cancelled) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    if (!op->has_lock) volt__lock(op->lock);
    uint8_t was = volt__node_state(node);
    VOLT_ASSERT(is_cancelled || was != VOLT__LINKED);
    if (was == VOLT__LINKED) volt__list_remove(op->waiters, node);
    if (was != VOLT__IDLE && op->task) volt__node_unbind(node, op->task);
    else volt__node_set(node, VOLT__IDLE);
    int64_t value = is_cancelled ? op->abandon(op, node, was, &wakes)
                                 : op->attempt(op, node, was, &wakes);
    volt__unlock(op->lock);
    volt__wake_list_run_if_any(&wakes);
    return value;
}
// Steps 2 to 6 of a leaf that waits by a wait op.
static volt_poll volt__wait_op_poll(volt_cx *cx, volt__node *node, volt__wait_op *op) {
    int is_cancelled = volt__scope_is_cancelled(cx), is_idle = volt__node_state(node) == VOLT__IDLE;
    if (is_cancelled && is_idle) return volt__leaf_ready(node, -ECANCELED);
    // The node of a claimed arm may still be LINKED. The partner that has claimed the arm holds the
    // lock until it has fired the node, so the step below sees the final state.
    int is_claimed = node->shield_base_ & VOLT__CLAIMED;
    if (!is_cancelled && volt__node_state(node) == VOLT__LINKED && !is_claimed)
        return volt__leaf_pending(cx, node, 0);
    op->task = cx->task_;
    int64_t value = volt__wait_op_step(op, node, is_cancelled);
    return value == VOLT__PENDING ? volt__leaf_pending(cx, node, 0) : volt__leaf_ready(node, value);
}
// Called when the parker has timed out. If the node is still linked, it is unlinked, and the result
// of abandon is returned. Otherwise the node was fired. VOLT__PENDING is then returned, but only
// after the parker was set, because the wake list uses the node until then.
static int64_t volt__wait_op_time_out(volt__wait_op *op, volt__thread_waiter *b) {
    volt__wake_list wakes;
    int64_t value = VOLT__PENDING;
    volt__wake_list_init(&wakes);
    volt__lock(op->lock);
    if (volt__node_state(&b->node) == VOLT__LINKED) {
        volt__list_remove(op->waiters, &b->node);
        volt__node_set(&b->node, VOLT__IDLE);
        value = op->abandon(op, &b->node, VOLT__LINKED, &wakes);
    }
    volt__unlock(op->lock);
    volt__wake_list_run_if_any(&wakes);
    if (value == VOLT__PENDING) volt__parker_wait(&b->parker, VOLT_NEVER); // on its way
    return value;
}
static void volt__thread_waiter_init(volt__thread_waiter *b) {
    memset(b, 0, sizeof *b);
    b->node.waiter_ = (void *)((uintptr_t)b | VOLT__WAITER_IS_THREAD);
}
// Blocks the thread for at most the duration at_most, but always tries once. Returns the result,
// -EDEADLK on a thread that carries a worker, or -ETIMEDOUT.
static int volt__wait_op_sync(volt__wait_op *op, volt_time at_most) {
    volt__thread_waiter b;
    if (VOLT_TLS_GET()) return -EDEADLK;
    volt__thread_waiter_init(&b);
    volt_time deadline = volt__deadline(at_most);
    for (;;) {
        int64_t value = volt__wait_op_step(op, &b.node, 0);
        if (value == VOLT__PENDING && volt__parker_wait(&b.parker, deadline) < 0) {
            value = volt__wait_op_time_out(op, &b);
            if (value == -ECANCELED) return -ETIMEDOUT;
        }
        if (value != VOLT__PENDING) return (int)value;
        volt__store_rlx(&b.parker.is_set, 0); // rlx: set again only after the next link
    }
}

//==================================================================================================
// >>time  sleep, interval, join, time limits
//==================================================================================================
// Sleeps, intervals and time limits, which wait for a timer, and joins, which wait for the end of
// another task. A time limit is a wrapper around an inner poll. All functions but
// volt_interval_init run inside a poll of the task that waits. Timers use the lock of their wheel;
// joins use the child's join word and no lock.
//   - A timer is armed on the wheel of the worker that runs the poll. A later poll of the task may
//     run on any worker, and removes it from that wheel.
//   - If the deadline has passed when a node is armed, the node is not put on a wheel: it is FIRED
//     at once, with source_ NULL.
//   - No sleep ends early. A relative time counts from the poll that arms the node.
//   - A registered join holds one reference to the waiting task. The child releases it when it
//     ends, unless the waiter is cancelled first and takes the reference back.
//   - At the end of each poll a wrapper restores the cancel level that it found.

// ---- sleep
// Arms a node of the running task for `deadline`, rounded up to a tick of the wheel. Returns 0 if
// the node is on the wheel, or 1 if the deadline has passed: the node is then FIRED.
static int volt__timer_start(volt_cx *cx, volt__node *node, volt_time deadline) {
    volt__worker *w = cx->worker_;
    VOLT_ASSERT(volt__node_state(node) == VOLT__IDLE);
    if (deadline > VOLT_NOW_NS()) {
        volt__timer_arm(&w->wheel, node, cx->task_, volt__tick_ceil(w->rt, deadline));
        return 0;
    }
    volt__node_bind(node, cx->task_, NULL);
    volt__node_set(node, VOLT__FIRED);
    return 1;
}
// Ends the wait of a node that was armed, if any. The node is IDLE afterwards.
static void volt__timer_end_wait(volt_cx *cx, volt__node *node) {
    if (volt__node_state(node) == VOLT__IDLE) return;
    if (node->source_) volt__timer_disarm(node, cx->task_);
    else volt__node_unbind(node, cx->task_);
}
// `is_relative`: `time` is a duration, counted from the poll that arms the node. VOLT_NEVER arms no
// timer in this poll.
static volt_poll volt__sleep_poll(volt_cx *cx, volt_time time, int is_relative) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_TIMER);
    if (!node) return volt_pending();
    if (volt__scope_is_cancelled(cx)) {
        volt__timer_end_wait(cx, node);
        return volt__leaf_ready(node, -ECANCELED);
    }
    uint8_t state = volt__node_state(node);
    if (state == VOLT__FIRED) {
        volt__timer_end_wait(cx, node);
        return volt__leaf_ready(node, 0);
    }
    if (state == VOLT__IDLE && time != VOLT_NEVER) {
        volt_time deadline = is_relative ? volt__deadline(time) : time;
        if (volt__timer_start(cx, node, deadline)) {
            volt__timer_end_wait(cx, node);
            return volt__leaf_ready(node, 0);
        }
    }
    return volt__leaf_pending(cx, node, 0);
}
VOLT_API volt_poll volt_sleep(volt_cx *cx, volt_time at_least) {
    VOLT__EXPECT_CX(cx, at_least <= 0 || at_least >= 1000,
                    "volt_sleep: less than 1 us; a forgotten VOLT_MS?");
    return volt__sleep_poll(cx, at_least, 1);
}
VOLT_API volt_poll volt_sleep_until(volt_cx *cx, volt_time deadline) {
    return volt__sleep_poll(cx, deadline, 0);
}

// ---- interval
VOLT_API void volt_interval_init(volt_interval *iv, volt_time period) {
    iv->period_ = period > 0 ? period : 0;
    iv->next_ = volt__time_add(volt_now(), iv->period_);
    iv->missed = VOLT_MISSED_BURST;
}
// Waits for the tick at iv->next_. `behind` is the number of later ticks that are due by then.
VOLT_API volt_poll volt_interval_next(volt_cx *cx, volt_interval *iv) {
    volt__check_not_on_stack(cx, iv);
    if (iv->period_ == 0) {
        volt__node *node = volt__leaf(cx, VOLT__LEAF_TIMER);
        return volt__budget_charge(cx) ? volt__leaf_ready(node, -EINVAL) : volt_pending();
    }
    volt_poll p = volt__sleep_poll(cx, iv->next_, 0);
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    volt_time now = VOLT_NOW_NS(), behind = now > iv->next_ ? (now - iv->next_) / iv->period_ : 0;
    volt_time n_ticks = iv->missed == VOLT_MISSED_SKIP ? behind + 1 : 1;
    if (iv->missed == VOLT_MISSED_DELAY) iv->next_ = volt__time_add(now, iv->period_);
    else iv->next_ += n_ticks * iv->period_;
    return volt_ready(n_ticks);
}

// ---- join
// The node of a join is IDLE until the task is registered in the join word of the child.

static void volt__join_cancel_wait(volt_cx *cx, volt__node *node, volt__task *child) {
    if (volt__node_state(node) == VOLT__IDLE) return;
    // If unregistering fails, the child has ended: the child's runner wakes this task, spuriously,
    // and releases the reference.
    if (volt__join_unregister(child, cx->task_)) volt__task_drop(cx->task_);
    volt__node_unbind(node, cx->task_);
}
// Returns 1 if the task is registered and the child will wake it, 0 if the child has ended.
static int volt__join_wait(volt_cx *cx, volt__node *node, volt__task *child) {
    if (volt__node_state(node) != VOLT__IDLE) return 1;
    cx->task_->flags |= VOLT__IS_SHARED;
    volt__task_retain(cx->task_); // before registering: the child may release it at once
    if (!volt__join_register(child, cx->task_)) {
        volt__task_drop(cx->task_);
        return 0;
    }
    volt__node_bind(node, cx->task_, child);
    return 1;
}
static volt_poll volt__join_poll(volt_cx *cx, volt_handle *h, void *state, size_t size) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_JOIN);
    volt__check_not_on_stack(cx, h);
    volt__check_not_on_stack(cx, state);
    if (!node) return volt_pending();
    if (!h->task_) return volt__leaf_ready(node, -EINVAL);
    VOLT__EXPECT_CX(cx, h->task_ != cx->task_, "volt_join: the task waits for its own end");
    if (volt__scope_is_cancelled(cx)) {
        volt__join_cancel_wait(cx, node, h->task_);
        return volt__leaf_ready(node, -ECANCELED);
    }
    if (!volt__join_is_done(h->task_) && volt__join_wait(cx, node, h->task_))
        return volt__leaf_pending(cx, node, 0);
    if (volt__node_state(node) != VOLT__IDLE) volt__node_unbind(node, cx->task_);
    if (size) {
        VOLT__REQUIRE_CX(cx, size <= volt__slab_of(h->task_)->slot_size - sizeof(volt__task),
                         "volt_join_state: `size` exceeds the state of the task");
        memcpy(state, volt__state_of(h->task_), size);
    }
    return volt__leaf_ready(node, volt__handle_take_result(h));
}
VOLT_API volt_poll volt_join(volt_cx *cx, volt_handle *h) {
    return volt__join_poll(cx, h, NULL, 0);
}
VOLT_API volt_poll volt_join_state(volt_cx *cx, volt_handle *h, void *state, size_t size) {
    return volt__join_poll(cx, h, state, size);
}

// ---- wrappers
// volt__wrapper_begin and volt__wrapper_end enclose each evaluation of the inner poll. Once the
// time is up, begin raises the cancel level to 1 + the shield depth at which the wrapper was first
// polled. That cancels the awaits at this depth, and none inside a shield that the inner operation
// has opened. end restores the level. A wrapper of a token (>>scopes) does the same once the token
// is cancelled.
//
// After SIGSTOP, after a suspend, or on an overloaded machine, a timer can expire before events
// that came earlier have been fetched. So an expired limit does not cancel at once: the inner poll
// is evaluated once more, the last try, and is cancelled in the poll after that. In a last try
// (cx->last_tries_ > 0), waits on descriptors check the descriptor itself, even if no event has
// been reported.

// Flags in resume_line_ of a wrapper's node. All are clear before the first poll and after the
// last.
//   ACTIVE    the wrapper was polled, and its inner operation has not ended
//   CANCELS   the wrapper cancels the inner operation in this poll
//   POLLING   the inner poll is being evaluated
//   LAST_TRY  the last try has begun, or is over
// So LAST_TRY without CANCELS means that the current poll is the last try.
enum {
    VOLT__WRAPPER_ACTIVE = 1,
    VOLT__WRAPPER_CANCELS = 2,
    VOLT__WRAPPER_POLLING = 4,
    VOLT__WRAPPER_LAST_TRY = 8
};
static void volt__wrapper_begin(volt_cx *cx, volt__node *node, int cancels) {
    VOLT_ASSERT(cx->frame_ != NULL && node != cx->frame_);
    volt__check_not_on_stack(cx, node);
    VOLT__EXPECT_CX(cx, !(node->resume_line_ & VOLT__WRAPPER_POLLING),
                    "volt_timer or volt_token_link nested in itself");
    node->saved_cancel_level_ = cx->cancel_level_;
    // Only at the first poll: later, cx->shield_depth_ is that of the frame that suspended.
    if (node->resume_line_ == 0) node->shield_base_ = cx->shield_depth_;
    node->resume_line_ = (node->resume_line_ & VOLT__WRAPPER_LAST_TRY) | VOLT__WRAPPER_ACTIVE |
                         VOLT__WRAPPER_POLLING;
    if (cancels) node->resume_line_ |= VOLT__WRAPPER_CANCELS;
    if (cancels) volt__raise_cancel_level(cx, node->shield_base_);
}
// Returns 1 if this wrapper alone has cancelled the inner poll: the level that it found would not
// have. Returns 0 if not.
static int volt__wrapper_end(volt_cx *cx, volt__node *node, int is_over) {
    int cancels = (node->resume_line_ & VOLT__WRAPPER_CANCELS) != 0;
    cx->cancel_level_ = node->saved_cancel_level_;
    node->resume_line_ = is_over
                             ? 0
                             : node->resume_line_ & ~(uint32_t)VOLT__WRAPPER_POLLING;
    return cancels && node->saved_cancel_level_ <= node->shield_base_;
}
// Begins a poll after the limit has expired: the first such poll is the last try, all later ones
// cancel. Without budget no inner leaf can try anything, so the last try is left to the next poll.
static __attribute__((noinline, cold)) void volt__within_begin_over(volt_cx *cx, volt__node *node) {
    int was_tried = (node->resume_line_ & VOLT__WRAPPER_LAST_TRY) != 0;
    volt__wrapper_begin(cx, node, was_tried);
    if (was_tried || cx->budget_ == 0) return;
    node->resume_line_ |= VOLT__WRAPPER_LAST_TRY;
    cx->last_tries_++;
}
VOLT_API void volt__within_begin(volt_cx *cx, volt_timer *t) {
    volt__node *node = &t->node_;
    if (VOLT__LIKELY(volt__node_state(node) != VOLT__FIRED)) volt__wrapper_begin(cx, node, 0);
    else volt__within_begin_over(cx, node);
}
// Ends a poll of a time limit. The timer is armed at the end of the first poll, and only if that is
// pending: an operation that completes at once needs no timer.
static volt_poll volt__timeout_end(volt_cx *cx, volt_timer *t, volt_time time, int is_relative,
                                   volt_poll inner) {
    volt__node *node = &t->node_;
    uint32_t way = node->resume_line_ & (VOLT__WRAPPER_LAST_TRY | VOLT__WRAPPER_CANCELS);
    int is_mine = volt__wrapper_end(cx, node, !volt_is_pending(inner));
    if (VOLT__UNLIKELY(way == VOLT__WRAPPER_LAST_TRY)) cx->last_tries_--;
    if (!volt_is_pending(inner)) {
        volt__timer_end_wait(cx, node);
        // For volt_timer_fired. Until the wait has ended, key_ is the tick of the timer.
        node->key_.was_timeout_ = is_mine && volt_value(inner) == -ECANCELED;
        return node->key_.was_timeout_ ? volt_ready(-ETIMEDOUT) : inner;
    }
    uint8_t state = volt__node_state(node);
    // The limit has expired and this poll was not cancelled: the next poll is the last try, or
    // cancels.
    if (VOLT__UNLIKELY(state == VOLT__FIRED) && !(way & VOLT__WRAPPER_CANCELS))
        (void)volt__task_wake(cx->task_);
    if (state == VOLT__IDLE && time != VOLT_NEVER) {
        volt_time deadline = is_relative ? volt__deadline(time) : time;
        // If the limit has expired already, the next poll is the last try.
        if (volt__timer_start(cx, node, deadline)) (void)volt__task_wake(cx->task_);
    }
    return inner;
}
VOLT_API volt_poll volt__within_end(volt_cx *cx, volt_timer *t, volt_time at_most,
                                    volt_poll inner) {
    return volt__timeout_end(cx, t, at_most, 1, inner);
}
VOLT_API volt_poll volt__before_end(volt_cx *cx, volt_timer *t, volt_time deadline,
                                    volt_poll inner) {
    return volt__timeout_end(cx, t, deadline, 0, inner);
}

//==================================================================================================
// >>scopes  shields, tokens, groups
//==================================================================================================
// Shields and groups, which are the two kinds of scopes, and tokens.
//   - The open scopes of a frame are linked from the innermost outwards: shields on any frame,
//     groups on the root frame of the task that owns them. waiter_ of the frame's node points to
//     the innermost scope instead of the task. Each scope points to the task, so that the node can
//     still wake it.
//   - A shield adds 1 to the shield depth, which puts the awaits inside it out of reach of the
//     cancel level. Once its bound has expired, each poll raises the cancel level above its depth.
//   - A task does not end before its groups are empty.
//   - A token tree has one lock, the root's, for links, waiters and hooks of all its tokens.
//   - lock_ of a group covers its members, its results and its waiters.
// Shields and groups are used inside a poll of the task that owns them. A member may also spawn
// into its group, and any thread may cancel a group. Any thread may use a token; volt_token_wait
// and the wrapper of a token run inside a poll.

// ---- scopes of a frame
// close_ tells the kinds apart: it is NULL in a shield.

static void volt__scope_push(volt__node *frame, volt__scope *s, volt__task *t) {
    VOLT_ASSERT(s->task_ == NULL && t != NULL);
    s->task_ = t;
    s->next_ = volt__scope_top(frame);
    frame->waiter_ = (void *)((uintptr_t)s | VOLT__WAITER_IS_SCOPE);
}
static void volt__scope_remove(volt__node *frame, volt__scope *s) {
    volt__scope *top = volt__scope_top(frame);
    VOLT_ASSERT(s->task_ != NULL);
    if (top == s) {
        uintptr_t next = (uintptr_t)s->next_;
        frame->waiter_ = next ? (void *)(next | VOLT__WAITER_IS_SCOPE) : NULL;
    } else {
        while (top && top->next_ != s) top = top->next_;
        if (!top) volt__misuse_current("shield or group belongs to another frame, after this line");
        top->next_ = s->next_;
    }
    s->task_ = NULL;
}
// Called when a frame with open scopes is entered again. A poll starts with a cancel level of 0 or
// 1, so the shields whose bound has expired raise it again. Outer shields come first, because each
// shield saves the cancel level that it finds.
static void volt__shield_raise(volt_cx *cx, volt__scope *s) {
    while (s && s->close_) s = s->next_; // groups, of which there may be thousands
    if (!s) return;
    volt__shield_raise(cx, s->next_);
    volt_shield *sh = VOLT__CONTAINER(volt_shield, scope_, s);
    sh->saved_cancel_level_ = cx->cancel_level_;
    sh->has_expired_ = volt__node_state(&sh->timer_.node_) == VOLT__FIRED;
    if (sh->has_expired_) volt__raise_cancel_level(cx, sh->depth_);
}
VOLT_API void volt__scope_enter(volt_cx *cx, volt__node *frame) {
    volt__shield_raise(cx, volt__scope_top(frame));
}
// Closes the innermost shield of the frame.
static void volt__shield_close(volt_cx *cx, volt__node *frame, volt_shield *s) {
    volt__timer_end_wait(cx, &s->timer_.node_);
    volt__scope_remove(frame, &s->scope_);
    s->open_ = 0;
    cx->shield_depth_--;
    if (s->has_expired_) cx->cancel_level_ = s->saved_cancel_level_;
}
// Closes the shields that a function has left open. Groups stay open: >>finish closes them when the
// task ends.
VOLT_API void volt__scope_leave(volt_cx *cx, volt__node *frame) {
    volt__scope *s = volt__scope_top(frame);
    while (s) {
        volt__scope *next = s->next_;
        if (!s->close_) {
            volt_shield *sh = VOLT__CONTAINER(volt_shield, scope_, s);
            VOLT_ASSERT(sh->depth_ == cx->shield_depth_);
            volt__shield_close(cx, frame, sh);
        }
        s = next;
    }
}
// Arms the bound here and not at the first wait, so that it covers the whole section.
VOLT_API void volt_shield_begin(volt_cx *cx, volt_shield *s, volt_time at_most) {
    volt__check_not_on_stack(cx, s);
    VOLT__REQUIRE_CX(cx, cx->frame_ != NULL && !s->open_,
                     "volt_shield_begin: no VOLT_BEGIN, or already open, after this line");
    // The cancel level must be able to exceed the depth, in 8 bits.
    VOLT__REQUIRE_CX(cx, cx->shield_depth_ < UINT8_MAX - 2,
                     "more than 253 nested shields, after this line");
    volt__scope_push(cx->frame_, &s->scope_, cx->task_);
    s->open_ = 1;
    s->has_expired_ = 0;
    s->saved_cancel_level_ = cx->cancel_level_;
    s->depth_ = ++cx->shield_depth_;
    if (at_most == VOLT_NEVER) return;
    if (volt__timer_start(cx, &s->timer_.node_, volt__deadline(at_most))) {
        s->has_expired_ = 1;
        volt__raise_cancel_level(cx, s->depth_);
    }
}
// The cancel level is restored only if the bound of this shield has raised it. Otherwise a raise by
// volt_is_cancelled inside the shield must last.
VOLT_API void volt_shield_end(volt_cx *cx, volt_shield *s) {
    VOLT__REQUIRE_CX(cx, s->open_ && s->depth_ == cx->shield_depth_,
                     "volt_shield_end: not the innermost open shield, after this line");
    volt__shield_close(cx, cx->frame_, s);
}

// ---- tokens
// Cancelling a token marks its whole subtree under one hold of the root's lock. A child of a
// cancelled token starts cancelled. Operations that may run at the same time:
//                     init    deinit  cancel  wait, with_token  is_cancelled
//   init              yes     others  yes     yes               yes
//   deinit            others  others  others  others            others
//   cancel            yes     others  yes     yes               yes
//   wait, with_token  yes     others  yes     yes               yes
//   hook, unhook      yes     others  yes     yes               yes
// "others": only on different tokens of the tree. The LAST TOUCH of a cancel is the unlock. Waits
// and unhook unlink under the lock. is_cancelled takes no lock [C1]. A wrapper that has seen the
// flag this way makes one more step of its wait, under the lock: the canceller has left the token
// by then, and the caller of the wrapper may free it.
static volt_token *volt__token_root(volt_token *t) { return t->root_ ? t->root_ : t; }
static inline int volt__token_is_set(const volt_token *t) {
    return (int)volt__load_acq(&t->cancelled_); // [C1] with cancel
}

VOLT_API void volt_token_init(volt_token *t, volt_token *parent) {
    memset(t, 0, sizeof *t);
    if (!parent) return;
    t->root_ = volt__token_root(parent);
    t->parent_ = parent;
    volt__lock(&t->root_->lock_);
    t->cancelled_ = parent->cancelled_;
    t->next_ = parent->child_;
    if (t->next_) t->next_->prev_ = t;
    parent->child_ = t;
    volt__unlock(&t->root_->lock_);
}
VOLT_API void volt_token_deinit(volt_token *t) {
    volt_token *root = volt__token_root(t);
    volt__lock(&root->lock_);
    int is_used = t->waiters_ || t->child_ || t->hooks_;
    if (t->parent_ && !is_used) {
        if (t->prev_) t->prev_->next_ = t->next_;
        else t->parent_->child_ = t->next_;
        if (t->next_) t->next_->prev_ = t->prev_;
    }
    volt__unlock(&root->lock_);
    if (is_used)
        volt__misuse_current(
            "volt_token_deinit: the token has waiters, children or hooks");
}
VOLT_API int volt_token_is_cancelled(const volt_token *t) { return volt__token_is_set(t); }
// Called under lock. Appends the hooks of this token at *end, the end of the list of hooks to call.
// Returns the new end of that list.
static volt_hook **volt__token_take_hooks(volt_token *t, volt_hook **end) {
    for (volt_hook *h = *end = t->hooks_; h; h = h->next_) {
        h->is_linked_ = 0;
        end = &h->next_;
    }
    t->hooks_ = NULL;
    return end;
}
// Called without the lock. Setting the parker is the LAST TOUCH of a hook: it ends the wait of
// volt_token_unhook.
static void volt__hooks_call(volt_hook *h) {
    for (volt_hook *next; h; h = next) {
        next = h->next_;
        h->fn_(h->arg_);
        volt__parker_set(&h->done_);
    }
}
// Visits the subtree of t without recursion: a child first, then the next sibling, else that of the
// nearest ancestor that has one. All waiters are fired in one hold of the lock. A woken waiter may
// free the token, so no token is touched after the unlock.
VOLT_API void volt_token_cancel(volt_token *t) {
    volt_token *root = volt__token_root(t), *at = t;
    volt_hook *hooks = NULL, **end = &hooks;
    volt__chain c;
    volt__chain_init(&c);
    volt__lock(&root->lock_);
    for (;;) {
        volt__store_rel(&at->cancelled_, 1); // [C1] with is_cancelled
        volt__list_fire_all(&at->waiters_, VOLT__FIRED, &c);
        end = volt__token_take_hooks(at, end);
        if (at->child_) {
            at = at->child_;
            continue;
        }
        while (at != t && !at->next_) at = at->parent_;
        if (at == t) break;
        at = at->next_;
    }
    volt__unlock(&root->lock_);
    volt__schedule_chain(&c);
    volt__hooks_call(hooks);
}
VOLT_API int volt_token_hook(volt_token *t, volt_hook *h, void (*fn)(void *arg), void *arg) {
    volt_token *root = volt__token_root(t);
    memset(h, 0, sizeof *h);
    h->fn_ = fn;
    h->arg_ = arg;
    h->token_ = t;
    volt__lock(&root->lock_);
    int is_cancelled = (int)t->cancelled_;
    if (!is_cancelled) {
        h->is_linked_ = 1;
        h->next_ = t->hooks_;
        if (h->next_) h->next_->prev_ = h;
        t->hooks_ = h;
    }
    h->done_.is_set = (uint32_t)is_cancelled; // if refused, unhook does not wait
    volt__unlock(&root->lock_);
    return is_cancelled ? -ECANCELED : 0;
}
// Returns 1 if the hook was still linked: its function is not called. Otherwise blocks the thread
// until the function has returned, and returns 0.
VOLT_API int volt_token_unhook(volt_hook *h) {
    volt_token *t = h->token_, *root = volt__token_root(t);
    volt__lock(&root->lock_);
    int was_linked = (int)h->is_linked_;
    if (was_linked) {
        if (h->prev_) h->prev_->next_ = h->next_;
        else t->hooks_ = h->next_;
        if (h->next_) h->next_->prev_ = h->prev_;
        h->is_linked_ = 0;
    }
    volt__unlock(&root->lock_);
    if (was_linked) return 1;
    volt__parker_wait(&h->done_, VOLT_NEVER);
    return 0;
}
static int64_t volt__token_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                   volt__wake_list *wakes) {
    const volt_token *token = (const volt_token *)op->on;
    (void)was, (void)wakes;
    if (token->cancelled_) return 0;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
static void volt__token_wait_op(volt__wait_op *op, volt_token *token) {
    volt__wait_op_init(op, token, &volt__token_root(token)->lock_, &token->waiters_,
                       volt__token_attempt, volt__abandon_nothing);
}
VOLT_API volt_poll volt_token_wait(volt_cx *cx, volt_token *token) {
    volt__wait_op op;
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_TOKEN);
    volt__check_not_on_stack(cx, token);
    if (!node) return volt_pending();
    volt__token_wait_op(&op, token);
    return volt__wait_op_poll(cx, node, &op);
}
// The wrapper of a token works as those of >>time, but without a last try. When a poll is pending
// its node is linked, so that the task is woken when the token is cancelled.
VOLT_API void volt__with_token_begin(volt_cx *cx, volt_token_link *l, volt_token *token) {
    volt__wrapper_begin(cx, &l->node_, volt__token_is_set(token));
}
VOLT_API volt_poll volt__with_token_end(volt_cx *cx, volt_token_link *l, volt_token *token,
                                        volt_poll inner) {
    volt__wait_op op;
    volt__node *node = &l->node_;
    int is_over = !volt_is_pending(inner), is_idle = volt__node_state(node) == VOLT__IDLE;
    int cancels = (node->resume_line_ & VOLT__WRAPPER_CANCELS) != 0;
    volt__wrapper_end(cx, node, is_over);
    // At the end the wait is undone. If the token is cancelled, an idle node makes that step, too:
    // the thread that cancels the token may still be using it.
    if (is_over ? is_idle && !cancels : !is_idle || cancels) return inner;
    volt__token_wait_op(&op, token);
    op.task = cx->task_;
    // Not pending: the token was cancelled during this poll. The next poll sees it.
    if (volt__wait_op_step(&op, node, is_over) != VOLT__PENDING && !is_over)
        (void)volt__task_wake(cx->task_);
    return inner;
}

// ---- groups
// The states of a group are listed in >>finish. The first spawn into an unowned group makes the
// calling task its owner: the group becomes a scope of that task. Only the owner takes results,
// waits and closes.

VOLT_API void volt_group_collect(volt_group *g) { g->collects_ = 1; }

static volt_poll volt__group_close_unclosed(volt_cx *cx, void *state); // below

// Returns the number of bytes behind the state: the link, and padding that keeps the slot size a
// multiple of the state's alignment, as it is without the link.
static size_t volt__group_extra(size_t size, size_t align) {
    size_t bytes = sizeof(volt__task) + ((size + 15) & ~(size_t)15) + sizeof(volt__group_link);
    return align > 16 ? sizeof(volt__group_link) + (align - bytes % align) % align
                      : sizeof(volt__group_link);
}
VOLT_API int volt__group_spawn(volt_cx *cx, volt_group *g, volt_fn *fn, const void *state,
                               size_t size, size_t align, const char *site) {
    volt__worker *w = cx->worker_;
    volt__check_not_on_stack(cx, g);
    if (!volt__spawn_is_valid(w->rt, state, size, site)) return -EINVAL;
    if (w->is_closing) return -ESHUTDOWN;
    volt__task *t = volt__task_alloc(w->rt, w, size, volt__group_extra(size, align));
    if (!t) return -ENOMEM;
    volt__state_copy(volt__task_state(t), state, size);
    volt__group_link *x = volt__task_group_link(t);
    volt__task_fill(t, fn, VOLT__HAS_GROUP_LINK, site);
    x->group = g;
    x->g_prev = NULL;
    uint32_t refs = g->collects_ ? 2 : 1;
    volt__task_publish(t, refs); // before linking: from then on volt_group_cancel changes its word
    volt__lock(&g->lock_);
    int is_refused = (int)g->is_closing_;
    if (!is_refused) {
        if (!g->scope_.task_) { // unowned: this task becomes the owner
            cx->task_->flags |= VOLT__HAD_GROUP;
            volt__scope_push(volt__root_frame(cx->task_), &g->scope_, cx->task_);
            g->scope_.close_ = volt__group_close_unclosed;
        }
        x->id = g->n_spawned_++;
        x->g_next = g->live_;
        if (g->live_) volt__task_group_link(g->live_)->g_prev = t;
        g->live_ = t;
        g->n_live_++;
    }
    volt__unlock(&g->lock_);
    // This cannot fail: only this worker sets its is_closing, and it was checked above.
    if (!is_refused) return volt__admit_task(w->rt, w, t, refs, 1);
    volt__task_refuse(t, refs);
    return -ECANCELED;
}
VOLT_API int volt_group_spawn_at(volt_cx *cx, volt_group *g, volt_fn *fn, const void *state,
                                 size_t size, const char *site) {
    return volt__group_spawn(cx, g, fn, state, size, 16, site);
}
VOLT_API int volt_group_spawn(volt_cx *cx, volt_group *g, volt_fn *fn, const void *state,
                              size_t size) {
    return volt__group_spawn(cx, g, fn, state, size, 16, "volt_group_spawn");
}
// Called under lock, so no member leaves the list during the walk. Adds the members that must be
// enqueued to *c.
static void volt__group_cancel_all(volt_group *g, volt__chain *c) {
    for (volt__task *t = g->live_; t; t = volt__task_group_link(t)->g_next)
        if (volt__task_cancel(t)) volt__chain_push(c, t);
}
VOLT_API void volt_group_cancel(volt_group *g) {
    volt__chain c;
    volt__chain_init(&c);
    volt__lock(&g->lock_);
    volt__group_cancel_all(g, &c);
    volt__unlock(&g->lock_);
    volt__schedule_chain(&c);
}
// Takes the oldest result: a task that has ended, with a reference. Called under lock, or when the
// group is closing and empty.
static volt__task *volt__group_take_done(volt_group *g) {
    volt__task *t = g->done_;
    if (!t) return NULL;
    g->done_ = volt__task_group_link(t)->g_next;
    VOLT_ASSERT(volt__task_group_link(t)->group == g);
    if (!g->done_) g->done_last_ = NULL;
    return t;
}
// Called when the owner has seen the group empty, so there is nothing to close when the task ends.
static void volt__group_disown(volt_cx *cx, volt_group *g) {
    if (g->scope_.task_ == cx->task_) volt__scope_remove(volt__root_frame(cx->task_), &g->scope_);
}
// The attempts of the three waits for a group. `empty` gives 0 once no member is left.
static int64_t volt__group_empty_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                         volt__wake_list *wakes) {
    const volt_group *g = (const volt_group *)op->on;
    (void)was, (void)wakes;
    if (g->n_live_ == 0) return 0;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
// Takes the oldest result, to *op->data, or else waits as `empty` does.
static int64_t volt__group_next_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                        volt__wake_list *wakes) {
    volt__task *done = volt__group_take_done((volt_group *)op->on);
    *(volt__task **)op->data = done;
    return done ? 0 : volt__group_empty_attempt(op, node, was, wakes);
}
static void volt__group_wait_op(volt__wait_op *op, volt_group *g, volt__wait_op_fn *attempt) {
    volt__wait_op_init(op, g, &g->lock_, &g->waiters_, attempt, volt__abandon_nothing);
}
VOLT_API volt_poll volt_group_wait(volt_cx *cx, volt_group *g) {
    volt__wait_op op;
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_GROUP);
    if (!node) return volt_pending();
    volt__group_wait_op(&op, g, volt__group_empty_attempt);
    volt_poll p = volt__wait_op_poll(cx, node, &op);
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    int64_t error = g->error_; // no lock: the group is empty, and now only its owner can spawn
    g->error_ = 0;
    if (!g->done_) volt__group_disown(cx, g);
    return volt_ready(error);
}
VOLT_API volt_poll volt_group_next(volt_cx *cx, volt_group *g, uint64_t *id) {
    volt__wait_op op;
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_GROUP);
    volt__task *done = NULL;
    if (!node) return volt_pending();
    if (!g->collects_) return volt__leaf_ready(node, -EINVAL);
    volt__group_wait_op(&op, g, volt__group_next_attempt);
    op.data = (void *)&done;
    volt_poll p = volt__wait_op_poll(cx, node, &op);
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    if (!done) {
        volt__group_disown(cx, g);
        return volt_ready(-ENOENT);
    }
    int64_t result = done->u.result;
    if (id) *id = volt__task_group_link(done)->id;
    volt__task_drop(done);
    return volt_ready(result);
}
// The first call sets is_closing_, which only the owner changes, and cancels all members. Returns 1
// when the last member has ended and the group can be used again, 0 while the node waits.
static int volt__group_close_step(volt_cx *cx, volt_group *g, volt__node *node) {
    volt__wait_op op;
    volt__chain c;
    volt__chain_init(&c);
    if (!g->is_closing_) {
        volt__lock(&g->lock_);
        uint32_t n_live = g->n_live_;
        g->is_closing_ = 1;
        volt__group_cancel_all(g, &c);
        volt__unlock(&g->lock_);
        VOLT__EXPECT_CX(cx, node->resume_line_ != VOLT__DONE || n_live == 0,
                        "function returned before its group was empty: await volt_group_close");
        (void)n_live;
        volt__schedule_chain(&c);
    }
    if (volt__node_state(node) == VOLT__LINKED) return 0;
    volt__group_wait_op(&op, g, volt__group_empty_attempt);
    op.task = cx->task_;
    if (volt__wait_op_step(&op, node, 0) == VOLT__PENDING) return 0;
    for (volt__task *t; (t = volt__group_take_done(g)) != NULL;) volt__task_drop(t);
    g->error_ = 0;
    g->n_spawned_ = 0;
    g->is_closing_ = 0;
    volt__group_disown(cx, g);
    return 1;
}
// Ignores cancellation: a cancelled task must wait for its children, too.
VOLT_API volt_poll volt_group_close(volt_cx *cx, volt_group *g) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_GROUP);
    if (!node) return volt_pending();
    return volt__group_close_step(cx, g, node) ? volt__leaf_ready(node, 0)
                                               : volt__leaf_pending(cx, node, 0);
}
// Replaces the function of a task that has returned with an open group. Closes the innermost group,
// then returns the result of the task, which key_ of the root frame keeps. volt__complete repeats
// this while groups are open.
static volt_poll volt__group_close_unclosed(volt_cx *cx, void *state) {
    volt__node *root = &((volt_frame *)state)->node_;
    VOLT_ASSERT((uintptr_t)root->waiter_ & VOLT__WAITER_IS_SCOPE);
    volt_group *g =
        VOLT__CONTAINER(volt_group, scope_, (uintptr_t)root->waiter_ - VOLT__WAITER_IS_SCOPE);
    cx->frame_ = root;
    cx->site_ = "a group that was left open";
    cx->wait_ = (uint32_t)VOLT__LEAF_GROUP << 24;
    return volt__group_close_step(cx, g, root) ? volt_ready(root->key_.result_) : volt_pending();
}

//==================================================================================================
// >>sema  mutex, rwlock, semaphore, once
//==================================================================================================
// A sema is a counter of permits with a list of waiters. Mutex, rwlock, semaphore and once are
// built on it. The word holds the number of free permits above four flags. Mutex, rwlock and once
// store that number XOR its maximum (`invert`), so that a zeroed word means "all permits free".
//   - QUEUED makes releases and closes take the lock. A waiter sets it before its last check. It is
//     cleared only under the lock, and no waiter is linked while it is clear.
//   - Fair (rwlock, semaphore, mutex with FIFO): released permits are reserved for the first waiter
//     until it has all that it wants. No permit is free while a waiter is linked, so no acquire can
//     overtake.
//   - Unfair (mutex without FIFO, once): a released permit is free for every caller, and the first
//     waiter is fired with RETRY. RETRYING is set until that waiter has taken the lock; releases do
//     not take the lock during that time. So one waiter retries at a time. If it finds the permit
//     taken, it is linked at the head again. After VOLT_MUTEX_BARGES failures the next release
//     grants it the permit.
// Functions that take a volt_cx run inside a poll, `_sync` functions on a thread that carries no
// worker; any thread may call the others. attempt and abandon functions run under the lock.
//
// All operations on one sema are ordered by the RMWs of its word; an acquire sees what came before
// the release or close whose value it reads [G1]. In addition, these take the lock:
//   acquire  to wait, and again when it was fired
//   release  while QUEUED is set and RETRYING is clear
//   close    while QUEUED is set
//   abandon  always
//
// ---- promises of locks and channels, and the test of each
// `each` stands for all that the line can apply to: the test named shows the promise for one, and
// tests whose names end alike show it for others.
//   each       cancelled before its turn: takes nothing  mutex_cancelled_waiter_takes_nothing
//   each       cancelled in its turn: the next gets it   sem_cancelled_grant_is_not_lost
//   each       a losing select takes nothing             notify_losing_arm_takes_nothing
//   each       tasks and threads wait on one object      once_serves_waiting_tasks_and_threads
//   each       a time limit ends the wait of a thread    event_sync_wait_times_out
//   each       `_sync` gives -EDEADLK on a worker        mutex_sync_wait_gives_edeadlk_on_worker
//   each       a shutdown ends the wait of every task    cond_waits_end_at_shutdown
//   each       the last waiter through may free it       rwlock_write_may_be_freed_by_last_waiter
//   each       a message of another size gives -EINVAL   chan_await_of_another_size_gives_einval
//   mutex      one holder at a time                      mutex_admits_one_at_a_time
//   mutex      overtaken a bounded number of times       mutex_is_barged_a_bounded_number_of_times
//   mutex      FIFO: strictly in turn                    fifo_mutex_is_not_barged
//   mutex      unlocked by another task: debug stops     mutex_unlock_by_another_task_is_misuse
//   rwlock     readers together, writers alone           rwlock_writer_excludes_readers_and_writers
//   rwlock     a reader waits behind a waiting writer    rwlock_reader_waits_behind_waiting_writer
//   rwlock     a downgrade lets no writer in between     rwlock_downgrade_admits_no_other_writer
//   semaphore  never more permits than exist             sem_never_grants_more_than_its_permits
//   semaphore  a large request is not overtaken          sem_large_request_is_not_overtaken
//   semaphore  beyond VOLT_SEM_MAX: -EOVERFLOW, -EINVAL  sem_refuses_more_permits_than_its_maximum
//   semaphore  closed: every wait gives -EPIPE           sem_close_ends_every_wait
//   once       after a failure the next task tries       once_failure_lets_the_next_waiter_begin
//   event      stays set until it is reset               event_stays_set_until_reset
//   event      set again: earlier writes are visible     event_second_set_makes_writes_visible
//   wait group waits for the last part                   wait_group_opens_at_the_last_done
//   tracker    waits until it is closed and empty        tracker_wait_ends_when_closed_and_empty
//   notify     one permit is kept                        notify_keeps_one_permit
//   notify     wakes the oldest, the newest, or all      notify_wakes_oldest_newest_or_all
//   notify     a cancelled wait passes its permit on     notify_last_cancelled_serves_last_but_one
//   notify     wait_past: ends if notified since         notify_wait_past_ends_after_notify_all
//   barrier    round by round, 1 to one of them          barrier_elects_one_leader_per_round
//   barrier    cancelled after its round: it counts      barrier_cancel_after_round_has_no_effect
//   cond       cancelled: the mutex is locked again      cond_cancelled_wait_relocks_its_mutex
//   cond       no signal is lost                         cond_loses_nothing
//   chan       each message once, a sender's in order    chan_delivers_each_message_once_in_order
//   chan       receivers are served in turn              chan_waiting_receivers_are_served_in_order
//   chan       senders are served in turn                chan_waiting_senders_are_served_in_order
//   chan       a cancelled receiver has received nothing chan_cancelled_receiver_takes_nothing
//   chan       a cancelled sender has sent nothing       chan_cancelled_sender_sends_nothing
//   chan       a close ends every wait                   chan_close_ends_every_wait
//   chan       buffered messages are still received      chan_close_keeps_buffered_messages
//   chan       a reservation survives a close            chan_reservation_outlasts_close
//   chan       closed when the last one is released      chan_closes_when_last_of_side_is_released
//   chan       cap 0: sent when it is received           chan_rendezvous_send_ends_when_received
//   queue      each message once, a sender's in order    queue_delivers_each_message_once_in_order
//   queue      drained, then closed                      queue_is_drained_before_it_is_closed
//   oneshot    closed: send and receive give -EPIPE     oneshot_close_ends_send_and_receive
//   oneshot    the sender learns that it is not wanted   oneshot_close_ends_work_of_its_sender
//   broadcast  received and lost are all that was sent   bcast_lost_plus_received_equal_sent
//   watch      the newest value not yet seen             watch_gives_newest_unseen_value
//   watch      until the predicate accepts a value       watch_until_sync_waits_for_accepted_value
//   none       allocates                                 chan_allocates_nothing

// The flags of the word; the fourth one is VOLT__SEMA_FIFO. Once CLOSED is set, every acquire gives
// -EPIPE, even if permits are free.
enum { VOLT__SEMA_QUEUED = 1, VOLT__SEMA_CLOSED = 2, VOLT__SEMA_RETRYING = 8 };
#define VOLT__SEMA_SHIFT 4
#define VOLT__SEMA_ONE (UINT32_C(1) << VOLT__SEMA_SHIFT) // `invert` of mutex and once: one permit
// `invert` of rwlock: all permits. That of a semaphore is 0.
#define VOLT__SEMA_ALL (~(VOLT__SEMA_ONE - 1))
VOLT__SASSERT(VOLT__SEMA_ALL >> VOLT__SEMA_SHIFT == VOLT_SEM_MAX, "VOLT_SEM_INIT knows the shift");
// key_ of a waiter: the permits still wanted in bits 0 to 31, failed retries in bits 32 to 47. The
// bits from 48 on belong to the caller: volt_cond_wait uses them.
#define VOLT__SEMA_TRIES (INT64_C(1) << 32)

static inline uint32_t volt__sema_permits_of(uint32_t word, uint32_t invert) {
    return (word ^ invert) >> VOLT__SEMA_SHIFT;
}
static inline uint32_t volt__sema_permits_sub(uint32_t word, uint32_t invert, uint32_t n) {
    return ((word ^ invert) - n * VOLT__SEMA_ONE) ^ invert;
}
static inline uint32_t volt__sema_permits_add(uint32_t word, uint32_t invert, uint32_t n) {
    return ((word ^ invert) + n * VOLT__SEMA_ONE) ^ invert;
}
static inline uint32_t volt__sema_permits_max(uint32_t invert) {
    return (invert ? invert : VOLT__SEMA_ALL) >> VOLT__SEMA_SHIFT;
}
static inline int volt__sema_is_fair(uint32_t word, uint32_t invert) {
    return invert != VOLT__SEMA_ONE || (word & VOLT__SEMA_FIFO) != 0;
}
// Returns 0, -EAGAIN if too few permits are free, or -EPIPE if the sema is closed.
static inline int volt__sema_try_acquire(volt__sema *sema, uint32_t invert, uint32_t n) {
    for (;; volt__spin_backoff(VOLT_LOCK_SPIN)) {
        uint32_t word = volt__load_acq(&sema->word_); // [G1] with close
        if (word & VOLT__SEMA_CLOSED) return -EPIPE;
        if (volt__sema_permits_of(word, invert) < n) return -EAGAIN;
        // [G1] with release
        if (volt__cas_acq_rel(&sema->word_, &word, volt__sema_permits_sub(word, invert, n)))
            return 0;
    }
}
static __attribute__((noinline)) int volt__sema_try_acquire_slow(volt__sema *sema, uint32_t invert,
                                                                 uint32_t n) {
    return volt__sema_try_acquire(sema, invert, n);
}
// Uncontended fast paths for an inverted word: one CAS without a preceding load, since the load
// would wait for the last change of the word to complete. acquire_idle expects that all permits are
// free, release_idle that all but n are free; both expect no flag, so they always fail for a FIFO
// mutex. They return 1 if done, 0 if not. release_idle stores `becomes`: 0 frees all permits.
static inline int volt__sema_acquire_idle(volt__sema *sema, uint32_t invert, uint32_t n) {
    uint32_t word = 0;
    // [G1] with release_idle, release
    return volt__cas_acq_rel(&sema->word_, &word, volt__sema_permits_sub(0, invert, n));
}
static inline int volt__sema_release_idle(volt__sema *sema, uint32_t invert, uint32_t n,
                                          uint32_t becomes) {
    uint32_t word = volt__sema_permits_sub(0, invert, n);
    // [G1] with acquire_idle, try_acquire. LAST TOUCH
    return volt__cas_acq_rel(&sema->word_, &word, becomes);
}
static inline int volt__sema_try_acquire_fast(volt__sema *sema, uint32_t invert, uint32_t n) {
    return VOLT__LIKELY(volt__sema_acquire_idle(sema, invert, n))
               ? 0
               : volt__sema_try_acquire_slow(sema, invert, n);
}
static uint32_t volt__sema_n_wanted(const volt__node *node) {
    return (uint32_t)node->key_.permits_;
}
static uint32_t volt__sema_n_tries(const volt__node *node) {
    return (uint32_t)(node->key_.permits_ / VOLT__SEMA_TRIES) & 0xffff;
}
// Called under lock. Frees n permits, except those above the maximum: releases may have filled the
// sema while these were reserved. Clears QUEUED if no waiter is linked.
static void volt__sema_return_permits(volt__sema *sema, uint32_t invert, uint32_t n) {
    uint32_t keep = sema->waiters_ ? ~UINT32_C(0) : ~(uint32_t)VOLT__SEMA_QUEUED, fit;
    uint32_t word = volt__load_rlx(&sema->word_); // rlx: hint, re-checked by the CAS
    do fit = volt__min32(n, volt__sema_permits_max(invert) - volt__sema_permits_of(word, invert));
    // [G1] with try_acquire
    while (!volt__cas_acq_rel(&sema->word_, &word,
                              volt__sema_permits_add(word, invert, fit) & keep));
}
// Called under lock, with at least one waiter. Distributes n permits. Fair: reserves them for the
// waiters in order, and fires each that has all it wants. Unfair: frees them and fires the first
// waiter to retry; but one that has failed VOLT_MUTEX_BARGES times is served as if fair.
static void volt__sema_grant_waiters(volt__sema *sema, uint32_t invert, uint32_t n,
                                     volt__wake_list *wakes) {
    uint32_t word = volt__load_rlx(&sema->word_); // rlx: FIFO is constant; the CAS checks the rest
    VOLT_ASSERT(sema->waiters_ && (word & VOLT__SEMA_QUEUED));
    if (!volt__sema_is_fair(word, invert) &&
        volt__sema_n_tries(sema->waiters_) < VOLT_MUTEX_BARGES) {
        volt__wake_list_fire_first(wakes, &sema->waiters_, VOLT__RETRY);
        // [G1] with try_acquire
        while (!volt__cas_acq_rel(&sema->word_, &word,
                                  volt__sema_permits_add(word, invert, n) | VOLT__SEMA_RETRYING)) {}
        return;
    }
    while (n > 0 && sema->waiters_) {
        volt__node *first = sema->waiters_;
        uint32_t given = volt__min32(n, volt__sema_n_wanted(first));
        first->key_.permits_ -= given;
        n -= given;
        if (volt__sema_n_wanted(first) > 0) return;
        volt__wake_list_fire_first(wakes, &sema->waiters_, VOLT__FIRED);
    }
    volt__sema_return_permits(sema, invert, n);
}
// Returns 1 if the permits were distributed. Returns 0 if no waiter is left: QUEUED was cleared,
// nothing was released, and the caller releases by CAS. If it were released here, under the lock,
// an acquire without a wait could succeed, and its caller free the sema before this thread unlocks
// it.
static int volt__sema_release_queued(volt__sema *sema, uint32_t invert, uint32_t n) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&sema->lock_);
    int is_waited_for = sema->waiters_ != NULL;
    if (is_waited_for) volt__sema_grant_waiters(sema, invert, n, &wakes);
    else volt__sema_return_permits(sema, invert, 0);
    volt__unlock(&sema->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_waited_for;
}
// Returns 0 or -EOVERFLOW. The shape of this loop, a CAS unless waiters are linked, is repeated by
// each change of a word below. One function for all, with the change as its argument, costs up to
// 22 % more instructions where no waiter is linked.
static inline int volt__sema_release(volt__sema *sema, uint32_t invert, uint32_t n) {
    for (;; volt__spin_backoff(VOLT_LOCK_SPIN)) {
        uint32_t word = volt__load_rlx(&sema->word_); // rlx: hint, re-checked by the CAS
        if (n > volt__sema_permits_max(invert) - volt__sema_permits_of(word, invert))
            return -EOVERFLOW;
        if (VOLT__UNLIKELY((word & (VOLT__SEMA_QUEUED | VOLT__SEMA_RETRYING)) ==
                           VOLT__SEMA_QUEUED)) {
            if (volt__sema_release_queued(sema, invert, n)) return 0;
            // [G1] with try_acquire. LAST TOUCH
        } else if (volt__cas_acq_rel(&sema->word_, &word,
                                     volt__sema_permits_add(word, invert, n))) {
            return 0;
        }
    }
}
// Called under lock, in the step of a waiter that was fired with RETRY. From here on releases take
// the lock again.
static void volt__sema_retry_done(volt__sema *sema) {
    // [G1] with release
    volt__and_acq_rel(&sema->word_, ~(uint32_t)VOLT__SEMA_RETRYING);
}
// Called under lock. Takes up to op->n permits and returns the number taken: all, some or none.
// Clears QUEUED if it takes all and no waiter is linked.
static uint32_t volt__sema_take_permits(volt__sema *sema, const volt__wait_op *op) {
    uint32_t n, left, word = volt__load_acq(&sema->word_); // [G1] with release
    VOLT_ASSERT(!volt__sema_is_fair(word, op->mask) || !sema->waiters_ ||
                volt__sema_permits_of(word, op->mask) == 0);
    do {
        if (word & VOLT__SEMA_CLOSED) return 0;
        n = volt__min32(volt__sema_permits_of(word, op->mask), op->n);
        if (n == 0) return 0;
        left = volt__sema_permits_sub(word, op->mask, n);
        if (n == op->n && !sema->waiters_) left &= ~(uint32_t)VOLT__SEMA_QUEUED;
    } while (!volt__cas_acq_rel(&sema->word_, &word, left)); // [G1] with release
    return n;
}
// A waiter that was FIRED has all its permits. Any other takes what is free, and is linked for the
// rest: at the head if it was fired to retry, so that it keeps its turn.
static int64_t volt__sema_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                  volt__wake_list *wakes) {
    volt__sema *sema = (volt__sema *)op->on;
    (void)wakes;
    if (was == VOLT__FIRED) return 0;
    // From here on releases take the lock, unless RETRYING is set.
    (void)volt__or_acq_rel(&sema->word_, VOLT__SEMA_QUEUED); // [G1] with release
    if (was == VOLT__RETRY) volt__sema_retry_done(sema);
    uint32_t got = volt__sema_take_permits(sema, op);
    if (got == op->n) return 0;
    if (volt__load_acq(&sema->word_) & VOLT__SEMA_CLOSED) { // [G1] with close, under lock
        volt__sema_return_permits(sema, op->mask,
                                  was == VOLT__CLOSED ? op->n - volt__sema_n_wanted(node) : 0);
        return -EPIPE;
    }
    int64_t tries = was == VOLT__RETRY ? volt__sema_n_tries(node) + 1 : 0;
    int64_t of_caller = node->key_.permits_ & ~(VOLT__SEMA_TRIES * 0x10000 - 1);
    node->key_.permits_ = of_caller + tries * VOLT__SEMA_TRIES + op->n - got;
    volt__wait_op_link(op, node, was == VOLT__RETRY);
    return VOLT__PENDING;
}
// Passes on what the cancelled waiter had: permits, or the turn to retry.
static int64_t volt__sema_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                  volt__wake_list *wakes) {
    volt__sema *sema = (volt__sema *)op->on;
    uint32_t part = was == VOLT__LINKED || was == VOLT__CLOSED ? op->n - volt__sema_n_wanted(node)
                                                               : 0;
    uint32_t had = was == VOLT__FIRED ? op->n : part;
    if (was == VOLT__RETRY) volt__sema_retry_done(sema);
    uint32_t word = volt__load_acq(&sema->word_); // [G1] with release
    if (was == VOLT__RETRY && sema->waiters_ && volt__sema_permits_of(word, op->mask) > 0)
        volt__sema_grant_waiters(sema, op->mask, 0, wakes);
    else if (had > 0 && sema->waiters_) volt__sema_grant_waiters(sema, op->mask, had, wakes);
    else volt__sema_return_permits(sema, op->mask, had);
    return -ECANCELED;
}
// Returns 1 if the sema was closed. Returns 0 if no waiter is left: QUEUED was cleared, the sema is
// still open, and the caller closes it by CAS, as after volt__sema_release_queued.
static int volt__sema_close_queued(volt__sema *sema) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&sema->lock_);
    int is_waited_for = sema->waiters_ != NULL;
    if (is_waited_for) {
        volt__or_acq_rel(&sema->word_, VOLT__SEMA_CLOSED); // [G1] with try_acquire
        volt__wake_list_fire_all(&wakes, &sema->waiters_, VOLT__CLOSED);
    } else {
        volt__sema_return_permits(sema, 0, 0);
    }
    volt__unlock(&sema->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_waited_for;
}
static void volt__sema_close(volt__sema *sema) {
    uint32_t word = volt__load_rlx(&sema->word_); // rlx: hint, re-checked by the CAS
    for (;;) {
        if (VOLT__UNLIKELY(word & VOLT__SEMA_QUEUED)) {
            if (volt__sema_close_queued(sema)) return;
            word = volt__load_rlx(&sema->word_); // rlx: hint, re-checked by the CAS
            // [G1] with try_acquire. LAST TOUCH
        } else if (volt__cas_acq_rel(&sema->word_, &word, word | VOLT__SEMA_CLOSED)) {
            return;
        }
    }
}
static void volt__sema_wait_op(volt__wait_op *op, volt__sema *sema, uint32_t invert, uint32_t n) {
    volt__wait_op_init(op, sema, &sema->lock_, &sema->waiters_, volt__sema_attempt,
                       volt__sema_abandon);
    op->n = n;
    op->mask = invert;
}
static __attribute__((noinline)) volt_poll volt__sema_poll_slow(volt_cx *cx, volt__node *node,
                                                                volt__sema *sema, uint32_t invert,
                                                                uint32_t want) {
    volt__wait_op op;
    volt__sema_wait_op(&op, sema, invert, want);
    return volt__wait_op_poll(cx, node, &op);
}
// `is_alone`: try the uncontended fast path first.
static inline volt_poll volt__sema_poll(volt_cx *cx, volt__sema *sema, uint32_t invert,
                                        uint32_t want, int is_alone) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_LOCK);
    volt__check_not_on_stack(cx, sema);
    if (!node) return volt_pending();
    if (VOLT__LIKELY(volt__node_state(node) == VOLT__IDLE && !volt__scope_is_cancelled(cx))) {
        int rc = is_alone ? volt__sema_try_acquire_fast(sema, invert, want)
                          : volt__sema_try_acquire(sema, invert, want);
        if (VOLT__LIKELY(rc != -EAGAIN)) return volt__leaf_ready(node, rc);
    }
    return volt__sema_poll_slow(cx, node, sema, invert, want);
}
// Returns 0, -EDEADLK on a thread that carries a worker, -EPIPE if closed, or -ETIMEDOUT.
static int volt__sema_sync(volt__sema *sema, uint32_t invert, uint32_t want, volt_time at_most) {
    volt__wait_op op;
    if (VOLT_TLS_GET()) return -EDEADLK;
    int rc = volt__sema_try_acquire(sema, invert, want);
    if (rc != -EAGAIN) return rc;
    volt__sema_wait_op(&op, sema, invert, want);
    return volt__wait_op_sync(&op, at_most);
}

// ---- mutex
#if VOLT_DEBUG
// Returns the task that is polled on this thread, or NULL if the thread carries no worker.
static const volt__task *volt__running_task(void) {
    const volt__worker *w = VOLT_TLS_GET();
    return w ? w->cx.task_ : NULL;
}
static void volt__mutex_set_holder(volt_mutex *m, int rc) {
    if (rc == 0) volt__store_rlx(&m->holder_, volt__running_task()); // rlx: only compared
}
// Returns 1 if the current frame runs in an arm or a child array, and 0 if the root frame leads to
// it through plain children only. The branches of one task may wait for each other, so a second
// lock by the same task is legal in an arm.
static int volt__is_in_arm(const volt_cx *cx) {
    const volt__node *node = volt__root_frame(cx->task_);
    while (node != cx->frame_ && node->kind_ == VOLT__CHILD)
        node = (const volt__node *)node->source_;
    return node != cx->frame_;
}
// Called when volt_mutex_lock is pending: a task that holds the mutex would wait for itself.
static void volt__mutex_check_holder(const volt_cx *cx, const volt_mutex *m) {
    // rlx: only compared
    if (cx->task_ == volt__load_rlx(&m->holder_) && !volt__is_in_arm(cx))
        volt__misuse_current("volt_mutex_lock: the task holds it already");
}
static void volt__mutex_clear_holder(volt_mutex *m) {
    const volt__task *me = volt__running_task();
    const volt__task *holder = volt__load_rlx(&m->holder_); // rlx: only compared
    if (holder && me && me != holder)
        volt__misuse_current("volt_mutex_unlock: another task holds it");
    // rlx: only compared
    volt__store_rlx(&m->holder_, (const volt__task *)NULL);
}
#else
#  define volt__mutex_set_holder(m_, rc_) ((void)(rc_))
#  define volt__mutex_check_holder(cx_, m_) ((void)0)
#  define volt__mutex_clear_holder(m_) ((void)0)
#endif
VOLT_API volt_poll volt_mutex_lock(volt_cx *cx, volt_mutex *m) {
    volt_poll p = volt__sema_poll(cx, &m->sema_, VOLT__SEMA_ONE, 1, 1);
    if (volt_is_pending(p)) volt__mutex_check_holder(cx, m);
    else volt__mutex_set_holder(m, (int)volt_value(p));
    return p;
}
VOLT_API int volt_mutex_try_lock(volt_mutex *m) {
    int rc = volt__sema_try_acquire_fast(&m->sema_, VOLT__SEMA_ONE, 1);
    volt__mutex_set_holder(m, rc);
    return rc;
}
VOLT_API int volt_mutex_lock_sync(volt_mutex *m, volt_time at_most) {
    int rc = volt__sema_sync(&m->sema_, VOLT__SEMA_ONE, 1, at_most);
    volt__mutex_set_holder(m, rc);
    return rc;
}
VOLT_API void volt_mutex_unlock(volt_mutex *m) {
    volt__mutex_clear_holder(m);
    if (VOLT__LIKELY(volt__sema_release_idle(&m->sema_, VOLT__SEMA_ONE, 1, 0))) return;
    if (VOLT__UNLIKELY(volt__sema_release(&m->sema_, VOLT__SEMA_ONE, 1) < 0))
        volt__misuse_current("volt_mutex_unlock: it is not locked");
}

// ---- rwlock
// A writer takes all permits, a reader takes one. is_writing_ is set by the writer while it holds
// the lock, and tells volt_rwlock_unlock how many permits to release.
#define VOLT__READERS VOLT_SEM_MAX
static inline int volt__rwlock_set_writing(volt_rwlock *l, int rc) {
    if (rc == 0) l->is_writing_ = 1;
    return rc;
}
VOLT_API volt_poll volt_rwlock_read(volt_cx *cx, volt_rwlock *l) {
    return volt__sema_poll(cx, &l->sema_, VOLT__SEMA_ALL, 1, 1);
}
VOLT_API volt_poll volt_rwlock_write(volt_cx *cx, volt_rwlock *l) {
    volt_poll p = volt__sema_poll(cx, &l->sema_, VOLT__SEMA_ALL, VOLT__READERS, 1);
    if (!volt_is_pending(p)) volt__rwlock_set_writing(l, (int)volt_value(p));
    return p;
}
VOLT_API int volt_rwlock_try_read(volt_rwlock *l) {
    return volt__sema_try_acquire_fast(&l->sema_, VOLT__SEMA_ALL, 1);
}
VOLT_API int volt_rwlock_try_write(volt_rwlock *l) {
    return volt__rwlock_set_writing(
        l, volt__sema_try_acquire_fast(&l->sema_, VOLT__SEMA_ALL, VOLT__READERS));
}
VOLT_API int volt_rwlock_read_sync(volt_rwlock *l, volt_time at_most) {
    return volt__sema_sync(&l->sema_, VOLT__SEMA_ALL, 1, at_most);
}
VOLT_API int volt_rwlock_write_sync(volt_rwlock *l, volt_time at_most) {
    return volt__rwlock_set_writing(
        l, volt__sema_sync(&l->sema_, VOLT__SEMA_ALL, VOLT__READERS, at_most));
}
VOLT_API void volt_rwlock_unlock(volt_rwlock *l) {
    uint32_t n = l->is_writing_ ? VOLT__READERS : 1; // stable: the caller holds the lock
    if (n > 1) l->is_writing_ = 0;
    if (VOLT__LIKELY(volt__sema_release_idle(&l->sema_, VOLT__SEMA_ALL, n, 0))) return;
    if (volt__sema_release(&l->sema_, VOLT__SEMA_ALL, n) < 0)
        volt__misuse_current("volt_rwlock_unlock: it is not locked");
}
VOLT_API void volt_rwlock_downgrade(volt_rwlock *l) {
    if (!l->is_writing_)
        volt__misuse_current("volt_rwlock_downgrade: it is not locked for writing");
    l->is_writing_ = 0;
    (void)volt__sema_release(&l->sema_, VOLT__SEMA_ALL, VOLT__READERS - 1);
}

// ---- semaphore
VOLT_API volt_poll volt_sem_acquire(volt_cx *cx, volt_sem *s, uint32_t n) {
    if (VOLT__LIKELY(n <= VOLT_SEM_MAX)) return volt__sema_poll(cx, &s->sema_, 0, n, 0);
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_LOCK);
    if (!node) return volt_pending();
    return volt__leaf_ready(node, volt__scope_is_cancelled(cx) ? -ECANCELED : -EINVAL);
}
VOLT_API int volt_sem_try_acquire(volt_sem *s, uint32_t n) {
    return n > VOLT_SEM_MAX ? -EINVAL : volt__sema_try_acquire(&s->sema_, 0, n);
}
VOLT_API int volt_sem_acquire_sync(volt_sem *s, uint32_t n, volt_time at_most) {
    return n > VOLT_SEM_MAX ? -EINVAL : volt__sema_sync(&s->sema_, 0, n, at_most);
}
VOLT_API int volt_sem_release(volt_sem *s, uint32_t n) {
    if (n > VOLT_SEM_MAX) return -EOVERFLOW;
    return n == 0 ? 0 : volt__sema_release(&s->sema_, 0, n);
}
VOLT_API uint32_t volt_sem_forget(volt_sem *s, uint32_t n) {
    uint32_t word = volt__load_rlx(&s->sema_.word_), taken; // rlx: hint, re-checked by the CAS
    do taken = volt__min32(n, volt__sema_permits_of(word, 0));
    // [G1] with release
    while (!volt__cas_acq_rel(&s->sema_.word_, &word, volt__sema_permits_sub(word, 0, taken)));
    return taken;
}
VOLT_API uint32_t volt_sem_available(const volt_sem *s) {
    return volt__sema_permits_of(volt__load_rlx(&s->sema_.word_), 0); // rlx: statistic
}
VOLT_API void volt_sem_close(volt_sem *s) { volt__sema_close(&s->sema_); }

// ---- once
// A once is a mutex that is closed when the work is done, and stays closed.

// Returns 1 if the caller does the work, 0 if the work is done, or -errno.
static inline int volt__once_result(int64_t rc) {
    return rc == 0 ? 1 : rc == -EPIPE ? 0 : (int)rc;
}
VOLT_API volt_poll volt_once_begin(volt_cx *cx, volt_once *o) {
    volt_poll p = volt__sema_poll(cx, &o->sema_, VOLT__SEMA_ONE, 1, 0);
    return volt_is_pending(p) ? p : volt_ready(volt__once_result(volt_value(p)));
}
VOLT_API int volt_once_try_begin(volt_once *o) {
    return volt__once_result(volt__sema_try_acquire(&o->sema_, VOLT__SEMA_ONE, 1));
}
VOLT_API int volt_once_begin_sync(volt_once *o, volt_time at_most) {
    return volt__once_result(volt__sema_sync(&o->sema_, VOLT__SEMA_ONE, 1, at_most));
}
// `done` is CLOSED with the permit still taken. No caller needs that permit: a closed sema gives
// -EPIPE, which means done.
VOLT_API void volt_once_end(volt_once *o, int is_done) {
    const uint32_t done = volt__sema_permits_sub(VOLT__SEMA_CLOSED, VOLT__SEMA_ONE, 1);
    if (VOLT__LIKELY(is_done && volt__sema_release_idle(&o->sema_, VOLT__SEMA_ONE, 1, done)))
        return;
    uint32_t word = volt__load_rlx(&o->sema_.word_); // rlx: the caller holds the permit
    if (volt__sema_permits_of(word, VOLT__SEMA_ONE) > 0)
        volt__misuse_current("volt_once_end: no work has begun");
    if (is_done) volt__sema_close(&o->sema_);
    else (void)volt__sema_release(&o->sema_, VOLT__SEMA_ONE, 1);
}
VOLT_API int volt_once_is_done(const volt_once *o) {
    return (volt__load_acq(&o->sema_.word_) & VOLT__SEMA_CLOSED) != 0; // [G1] with close
}

//==================================================================================================
// >>waitword  event, wait group, tracker; notify, barrier, condition variable
//==================================================================================================
// Primitives on which tasks and threads wait for a state or a signal. Event, wait group, tracker
// and oneshot (>>oneshot) are waitwords. A waitword is a word with a list of waiters. It is open
// while its bits in `mask` have the value `open`, and a wait ends once it is open. Notify, barrier
// and condition variable have structs of their own. The rules of a waitword:
//   - QUEUED is set before a waiter is linked, and cleared only under the lock while no waiter is
//     linked. So no waiter is linked while QUEUED is clear.
//   - A change that opens the word takes the lock if QUEUED is set, and fires all waiters. Every
//     other change is one CAS without the lock.
//   - A waiter sets QUEUED before its last check of the word. So a change that opens the word after
//     that check takes the lock, and finds the waiter linked.
//   - A fired waiter's wait ends, even if the word has changed again. If no other waiter is linked,
//     its step clears QUEUED.
//   - A caller that is let through may free the object. LAST TOUCH marks the last access by the
//     operation that lets it through (see >>leaf).
// Functions that take a volt_cx run inside a poll, `_sync` functions on a thread that runs no
// worker; any thread may call the others. attempt and abandon functions run under the lock.
//
// Two operations on one waitword are ordered by the lock, or by their RMWs of the word:
//                 wait                    change                abandon
//   wait          lock                    RMW; [G2]             lock
//   change        RMW; [G2]               CAS                   lock

// FLAG of an event: set; of a tracker: closed; of a oneshot: ended.
enum { VOLT__WAITWORD_QUEUED = 1, VOLT__WAITWORD_FLAG = 2 };

// mask: all bits but QUEUED
#define VOLT__WAITWORD_ALL (~((uint32_t)VOLT__WAITWORD_QUEUED))
static inline int volt__waitword_matches(uint32_t word, uint32_t mask, uint32_t open) {
    return (word & mask) == open;
}
// Called under lock. Clears QUEUED if no waiter is linked.
static void volt__waitword_clear_queued(volt__waitword *waitword) {
    if (waitword->waiters_) return;
    // [G2] with change
    volt__and_acq_rel(&waitword->word_, ~(uint32_t)VOLT__WAITWORD_QUEUED);
}
// Returns 1 if the word is open, 0 if not.
static inline int volt__waitword_check(const volt__waitword *waitword, uint32_t mask,
                                       uint32_t open) {
    return volt__waitword_matches(volt__load_acq(&waitword->word_), mask, open); // [G2] with change
}
static int64_t volt__waitword_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                      volt__wake_list *wakes) {
    volt__waitword *waitword = (volt__waitword *)op->on;
    (void)wakes;
    if (was == VOLT__IDLE) {
        // [G2] with change
        uint32_t word = volt__or_acq_rel(&waitword->word_, VOLT__WAITWORD_QUEUED);
        if (!volt__waitword_matches(word, op->mask, op->n)) {
            volt__wait_op_link(op, node, 0);
            return VOLT__PENDING;
        }
    }
    volt__waitword_clear_queued(waitword);
    return 0;
}
static int64_t volt__waitword_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                      volt__wake_list *wakes) {
    (void)node, (void)was, (void)wakes;
    volt__waitword_clear_queued((volt__waitword *)op->on);
    return -ECANCELED;
}
// A change of the word. Returns the new word. A CAS that fails calls it again.
typedef uint32_t volt__waitword_fn(uint32_t word, uint32_t n);
// Changes the word under the lock and fires the waiters if the new word is open. Returns 1 if done,
// with the word before the change in *word. Returns 0 if no waiter is linked any more: QUEUED has
// been cleared, *word is the current word, and the caller makes the change by CAS. A change here
// would fire no waiter, so a caller that it lets through could free *waitword before the unlock.
static int volt__waitword_change_queued(volt__waitword *waitword, uint32_t mask, uint32_t open,
                                        volt__waitword_fn *change, uint32_t n, uint32_t *word) {
    volt__wake_list wakes;
    uint32_t to;
    volt__wake_list_init(&wakes);
    volt__lock(&waitword->lock_);
    int is_waited_for = waitword->waiters_ != NULL;
    volt__waitword_clear_queued(waitword);
    *word = volt__load_rlx(&waitword->word_); // rlx: hint, re-checked by the CAS
    if (is_waited_for) {
        do to = change(*word, n);
        while (!volt__cas_acq_rel(&waitword->word_, word, to)); // [G2] with check
        if (volt__waitword_matches(to, mask, open))
            volt__wake_list_fire_all(&wakes, &waitword->waiters_, VOLT__FIRED);
    }
    volt__unlock(&waitword->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_waited_for;
}
// Applies `change` to the word. Fires the waiters if the new word is open. Returns the old word.
static inline uint32_t volt__waitword_change(volt__waitword *waitword, uint32_t mask, uint32_t open,
                                             volt__waitword_fn *change, uint32_t n) {
    uint32_t word = volt__load_rlx(&waitword->word_); // rlx: hint, re-checked by the CAS
    for (;;) {
        uint32_t to = change(word, n);
        // Not skipped if to == word: setting an event again publishes more writes, and the word
        // that was loaded may be stale.
        if (VOLT__UNLIKELY((word & VOLT__WAITWORD_QUEUED) &&
                           volt__waitword_matches(to, mask, open))) {
            if (volt__waitword_change_queued(waitword, mask, open, change, n, &word)) return word;
            // [G2] with check. LAST TOUCH
        } else if (volt__cas_acq_rel(&waitword->word_, &word, to)) {
            return word;
        }
    }
}
static void volt__waitword_wait_op(volt__wait_op *op, volt__waitword *waitword, uint32_t mask,
                                   uint32_t open) {
    volt__wait_op_init(op, waitword, &waitword->lock_, &waitword->waiters_, volt__waitword_attempt,
                       volt__waitword_abandon);
    op->mask = mask;
    op->n = open;
}
static volt_poll volt__waitword_poll(volt_cx *cx, volt__waitword *waitword, uint32_t mask,
                                     uint32_t open) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_EVENT);
    volt__wait_op op;
    volt__check_not_on_stack(cx, waitword);
    if (!node) return volt_pending();
    if (volt__node_state(node) == VOLT__IDLE && !volt__scope_is_cancelled(cx) &&
        volt__waitword_check(waitword, mask, open))
        return volt__leaf_ready(node, 0);
    volt__waitword_wait_op(&op, waitword, mask, open);
    return volt__wait_op_poll(cx, node, &op);
}
static int volt__waitword_sync(volt__waitword *waitword, uint32_t mask, uint32_t open,
                               volt_time at_most) {
    volt__wait_op op;
    if (VOLT_TLS_GET()) return -EDEADLK;
    if (volt__waitword_check(waitword, mask, open)) return 0;
    volt__waitword_wait_op(&op, waitword, mask, open);
    return volt__wait_op_sync(&op, at_most);
}

// ---- event: its word is open while FLAG is set
static uint32_t volt__set_bits(uint32_t word, uint32_t n) { return word | n; }
static uint32_t volt__clear_bits(uint32_t word, uint32_t n) { return word & ~n; }
VOLT_API volt_poll volt_event_wait(volt_cx *cx, volt_event *e) {
    return volt__waitword_poll(cx, &e->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG);
}
VOLT_API int volt_event_wait_sync(volt_event *e, volt_time at_most) {
    return volt__waitword_sync(&e->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG, at_most);
}
VOLT_API void volt_event_set(volt_event *e) {
    volt__waitword_change(&e->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG, volt__set_bits,
                          VOLT__WAITWORD_FLAG);
}
VOLT_API void volt_event_reset(volt_event *e) {
    volt__waitword_change(&e->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG, volt__clear_bits,
                          VOLT__WAITWORD_FLAG);
}
VOLT_API int volt_event_is_set(const volt_event *e) {
    return (volt__load_acq(&e->waitword_.word_) & VOLT__WAITWORD_FLAG) != 0; // [G2] with change
}

// ---- wait group: its word is open while the count, from bit 1 on, is 0
// A change that would overflow or underflow leaves the word as it is. The caller can tell from the
// word before the change.
static uint32_t volt__count_add(uint32_t word, uint32_t n) {
    return (UINT32_MAX - word) / 2 < n ? word : word + 2 * n;
}
static uint32_t volt__count_sub(uint32_t word, uint32_t n) {
    return word < 2 * n ? word : word - 2 * n;
}
VOLT_API volt_poll volt_wait_group_wait(volt_cx *cx, volt_wait_group *g) {
    return volt__waitword_poll(cx, &g->waitword_, VOLT__WAITWORD_ALL, 0);
}
VOLT_API int volt_wait_group_wait_sync(volt_wait_group *g, volt_time at_most) {
    return volt__waitword_sync(&g->waitword_, VOLT__WAITWORD_ALL, 0, at_most);
}
VOLT_API int volt_wait_group_add(volt_wait_group *g, uint32_t n) {
    uint32_t before = volt__waitword_change(&g->waitword_, VOLT__WAITWORD_ALL, 0, volt__count_add,
                                            n);
    return n > 0 && volt__count_add(before, n) == before ? -EOVERFLOW : 0;
}
VOLT_API void volt_wait_group_done(volt_wait_group *g) {
    if (volt__waitword_change(&g->waitword_, VOLT__WAITWORD_ALL, 0, volt__count_sub, 1) < 2)
        volt__misuse_current("volt_wait_group_done: the count is 0 already");
}

// ---- tracker: its word is open while the tracker is closed and empty
// volt_tracker_close sets FLAG. The count is from bit 2 on, so an enter adds 4. An enter of a
// closed tracker, an overflow and an underflow leave the word as it is.
static uint32_t volt__tracker_add(uint32_t word, uint32_t n) {
    return (word & VOLT__WAITWORD_FLAG) || word > UINT32_MAX - n ? word : word + n;
}
static uint32_t volt__tracker_sub(uint32_t word, uint32_t n) { return word < n ? word : word - n; }
VOLT_API volt_poll volt_tracker_wait(volt_cx *cx, volt_tracker *t) {
    return volt__waitword_poll(cx, &t->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG);
}
VOLT_API int volt_tracker_wait_sync(volt_tracker *t, volt_time at_most) {
    return volt__waitword_sync(&t->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG, at_most);
}
VOLT_API int volt_tracker_enter(volt_tracker *t) {
    uint32_t before =
        volt__waitword_change(&t->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG,
                              volt__tracker_add, 4);
    if (before & VOLT__WAITWORD_FLAG) return -EPIPE;
    return volt__tracker_add(before, 4) == before ? -EOVERFLOW : 0;
}
VOLT_API void volt_tracker_leave(volt_tracker *t) {
    if (volt__waitword_change(&t->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG,
                              volt__tracker_sub, 4) < 4)
        volt__misuse_current("volt_tracker_leave: no volt_tracker_enter is left");
}
VOLT_API void volt_tracker_close(volt_tracker *t) {
    volt__waitword_change(&t->waitword_, VOLT__WAITWORD_ALL, VOLT__WAITWORD_FLAG, volt__set_bits,
                          VOLT__WAITWORD_FLAG);
}

// ---- notify
// The word holds QUEUED, a permit, and from bit 2 on the number of calls of volt_notify_all, modulo
// 2^30. waiters_ has the waits of volt_notify_wait, watchers_ those of volt_notify_wait_past.
//   - volt_notify_one and volt_notify_last fire one waiter, or set PERMIT if there is none.
//     volt_notify_all fires all waiters and watchers, and leaves PERMIT as it is.
//   - PERMIT is clear while waiters_ is not empty.
//   - QUEUED is set while either list is not empty. While it is set, every notification takes the
//     lock.
enum { VOLT__NOTIFY_QUEUED = 1, VOLT__NOTIFY_PERMIT = 2, VOLT__NOTIFY_ALL = 4 };

// Called under lock. Sets `permit`, which is VOLT__NOTIFY_PERMIT or 0, and clears QUEUED if both
// lists are empty.
static void volt__notify_return_permit(volt_notify *notify, uint32_t permit) {
    int is_waited_for = notify->waiters_ || notify->watchers_;
    uint32_t keep = is_waited_for ? ~UINT32_C(0) : ~(uint32_t)VOLT__NOTIFY_QUEUED;
    if (is_waited_for && permit == 0) return;
    uint32_t word = volt__load_rlx(&notify->word_); // rlx: hint, re-checked by the CAS
    // [G3] with wait, one
    while (!volt__cas_acq_rel(&notify->word_, &word, (word | permit) & keep)) {}
}
// Returns 1 if it has taken the permit, 0 if there is none.
static inline int volt__notify_take_permit(volt_notify *notify) {
    uint32_t word = volt__load_rlx(&notify->word_); // rlx: hint, re-checked by the CAS
    while (word & VOLT__NOTIFY_PERMIT)
        // [G3] with one
        if (volt__cas_acq_rel(&notify->word_, &word, word - VOLT__NOTIFY_PERMIT)) return 1;
    return 0;
}
static int64_t volt__notify_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                    volt__wake_list *wakes) {
    volt_notify *notify = (volt_notify *)op->on;
    (void)wakes;
    if (was == VOLT__IDLE) {
        // QUEUED is set before the last try to take the permit. It is set already if either list
        // is not empty, and stays set until the unlock.
        if (!notify->waiters_ && !notify->watchers_)
            volt__or_acq_rel(&notify->word_, VOLT__NOTIFY_QUEUED); // [G3] with one
        if (!volt__notify_take_permit(notify)) {
            volt__wait_op_link(op, node, 0);
            return VOLT__PENDING;
        }
    }
    volt__notify_return_permit(notify, 0);
    return 0;
}
// Called under lock while waiters_ is not empty. Fires the first waiter as FIRED or, if is_last,
// the last one as RETRY. The state tells volt__notify_abandon which end of the list is meant.
static void volt__notify_grant(volt_notify *notify, int is_last, volt__wake_list *wakes) {
    volt__node *to = is_last ? notify->waiters_->prev_ : notify->waiters_;
    uint8_t state = VOLT__FIRED;
    if (is_last) state = VOLT__RETRY;
    volt__list_remove(&notify->waiters_, to);
    volt__wake_list_fire(wakes, to, state);
}
// FIRED comes from volt_notify_one, RETRY from volt_notify_last: the notification passes to the
// next waiter from the same end of the list, or becomes the permit if no waiter is linked. CLOSED
// comes from volt_notify_all: there is nothing to pass on. Watchers use this function, too.
static int64_t volt__notify_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                    volt__wake_list *wakes) {
    volt_notify *notify = (volt_notify *)op->on;
    int is_left = was == VOLT__FIRED || was == VOLT__RETRY;
    (void)node;
    if (is_left && notify->waiters_) {
        volt__notify_grant(notify, was == VOLT__RETRY, wakes);
        is_left = 0;
    }
    volt__notify_return_permit(notify, is_left ? VOLT__NOTIFY_PERMIT : 0);
    return -ECANCELED;
}
// Returns 1 if done: a waiter is fired, or the permit is set because only watchers are linked.
// Returns 0 if both lists are empty: QUEUED has been cleared, and the caller sets the permit by
// CAS, for the reason given at volt__waitword_change_queued.
static int volt__notify_one_queued(volt_notify *notify, int is_last) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&notify->lock_);
    int is_waited_for = notify->waiters_ != NULL;
    if (is_waited_for) volt__notify_grant(notify, is_last, &wakes);
    else volt__notify_return_permit(notify, notify->watchers_ ? VOLT__NOTIFY_PERMIT : 0);
    is_waited_for |= notify->watchers_ != NULL;
    volt__unlock(&notify->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_waited_for;
}
static void volt__notify_wake_one(volt_notify *notify, int is_last) {
    uint32_t word = volt__load_rlx(&notify->word_); // rlx: hint, re-checked by the CAS
    for (;;) {
        if (VOLT__UNLIKELY(word & VOLT__NOTIFY_QUEUED)) {
            if (volt__notify_one_queued(notify, is_last)) return;
            word = volt__load_rlx(&notify->word_); // rlx: hint, re-checked by the CAS
            // [G3] with wait. LAST TOUCH
        } else if (volt__cas_acq_rel(&notify->word_, &word, word | VOLT__NOTIFY_PERMIT)) {
            return;
        }
    }
}
VOLT_API void volt_notify_one(volt_notify *notify) { volt__notify_wake_one(notify, 0); }
VOLT_API void volt_notify_last(volt_notify *notify) { volt__notify_wake_one(notify, 1); }
// Returns 1 if done. Returns 0 if both lists are empty: QUEUED has been cleared, and the caller
// counts the call by CAS.
static int volt__notify_all_queued(volt_notify *notify) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&notify->lock_);
    int is_waited_for = notify->waiters_ || notify->watchers_;
    if (is_waited_for) {
        volt__add_acq_rel(&notify->word_, VOLT__NOTIFY_ALL); // [G3] with wait_past
        volt__wake_list_fire_all(&wakes, &notify->waiters_, VOLT__CLOSED);
        volt__wake_list_fire_all(&wakes, &notify->watchers_, VOLT__CLOSED);
    } else {
        volt__notify_return_permit(notify, 0);
    }
    volt__unlock(&notify->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_waited_for;
}
VOLT_API void volt_notify_all(volt_notify *notify) {
    uint32_t word = volt__load_rlx(&notify->word_); // rlx: hint, re-checked by the CAS
    for (;;) {
        if (VOLT__UNLIKELY(word & VOLT__NOTIFY_QUEUED)) {
            if (volt__notify_all_queued(notify)) return;
            word = volt__load_rlx(&notify->word_); // rlx: hint, re-checked by the CAS
            // [G3] with wait_past. LAST TOUCH
        } else if (volt__cas_acq_rel(&notify->word_, &word, word + VOLT__NOTIFY_ALL)) {
            return;
        }
    }
}
static void volt__notify_wait_op(volt__wait_op *op, volt_notify *notify) {
    volt__wait_op_init(op, notify, &notify->lock_, &notify->waiters_, volt__notify_attempt,
                       volt__notify_abandon);
}
VOLT_API volt_poll volt_notify_wait(volt_cx *cx, volt_notify *notify) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_EVENT);
    volt__wait_op op;
    volt__check_not_on_stack(cx, notify);
    if (!node) return volt_pending();
    if (volt__node_state(node) == VOLT__IDLE && !volt__scope_is_cancelled(cx) &&
        volt__notify_take_permit(notify))
        return volt__leaf_ready(node, 0);
    volt__notify_wait_op(&op, notify);
    return volt__wait_op_poll(cx, node, &op);
}
VOLT_API int volt_notify_try_wait(volt_notify *notify) {
    return volt__notify_take_permit(notify) ? 0 : -EAGAIN;
}
VOLT_API int volt_notify_wait_sync(volt_notify *notify, volt_time at_most) {
    volt__wait_op op;
    if (VOLT_TLS_GET()) return -EDEADLK;
    if (volt__notify_take_permit(notify)) return 0;
    volt__notify_wait_op(&op, notify);
    return volt__wait_op_sync(&op, at_most);
}

VOLT_API uint32_t volt_notify_count(const volt_notify *notify) {
    return volt__load_acq(&notify->word_) / VOLT__NOTIFY_ALL; // [G3] with all
}
// Returns 1 if volt_notify_all was called since volt_notify_count returned `count`, else 0.
static inline int volt__notify_is_past(const volt_notify *notify, uint32_t count) {
    return volt_notify_count(notify) != count;
}
static int64_t volt__notify_attempt_past(const volt__wait_op *op, volt__node *node, uint8_t was,
                                         volt__wake_list *wakes) {
    volt_notify *notify = (volt_notify *)op->on;
    (void)wakes;
    if (was == VOLT__IDLE) {
        uint32_t word = volt__or_acq_rel(&notify->word_, VOLT__NOTIFY_QUEUED); // [G3] with all
        if (word / VOLT__NOTIFY_ALL == op->n) {
            volt__wait_op_link(op, node, 0);
            return VOLT__PENDING;
        }
    }
    volt__notify_return_permit(notify, 0);
    return 0;
}
static void volt__notify_past_wait_op(volt__wait_op *op, volt_notify *notify, uint32_t count) {
    volt__notify_wait_op(op, notify);
    op->waiters = &notify->watchers_;
    op->attempt = volt__notify_attempt_past;
    op->n = count;
}
VOLT_API volt_poll volt_notify_wait_past(volt_cx *cx, volt_notify *notify, uint32_t count) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_EVENT);
    volt__wait_op op;
    volt__check_not_on_stack(cx, notify);
    if (!node) return volt_pending();
    if (volt__node_state(node) == VOLT__IDLE && !volt__scope_is_cancelled(cx) &&
        volt__notify_is_past(notify, count))
        return volt__leaf_ready(node, 0);
    volt__notify_past_wait_op(&op, notify, count);
    return volt__wait_op_poll(cx, node, &op);
}
VOLT_API int volt_notify_wait_past_sync(volt_notify *notify, uint32_t count, volt_time at_most) {
    volt__wait_op op;
    if (VOLT_TLS_GET()) return -EDEADLK;
    if (volt__notify_is_past(notify, count)) return 0;
    volt__notify_past_wait_op(&op, notify, count);
    return volt__wait_op_sync(&op, at_most);
}

// ---- barrier: all under the lock
// arrived_ is the number of linked waiters. The n_-th arrival is not linked: it resets arrived_,
// fires all waiters and returns 1. The waiters return 0.
static int64_t volt__barrier_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                     volt__wake_list *wakes) {
    volt_barrier *b = (volt_barrier *)op->on;
    if (was == VOLT__FIRED) return 0;
    VOLT_ASSERT(!b->arrived_ == !b->waiters_);
    if (b->arrived_ + 1 < b->n_) {
        b->arrived_++;
        volt__wait_op_link(op, node, 0);
        return VOLT__PENDING;
    }
    b->arrived_ = 0;
    volt__wake_list_fire_all(wakes, &b->waiters_, VOLT__FIRED);
    return 1;
}
static int64_t volt__barrier_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                     volt__wake_list *wakes) {
    volt_barrier *b = (volt_barrier *)op->on;
    (void)node, (void)wakes;
    if (was == VOLT__FIRED) return 0; // too late to cancel: all have arrived
    VOLT_ASSERT(b->arrived_ > 0);
    b->arrived_--;
    return -ECANCELED;
}
static void volt__barrier_wait_op(volt__wait_op *op, volt_barrier *b) {
    volt__wait_op_init(op, b, &b->lock_, &b->waiters_, volt__barrier_attempt,
                       volt__barrier_abandon);
}
VOLT_API volt_poll volt_barrier_wait(volt_cx *cx, volt_barrier *b) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_EVENT);
    volt__wait_op op;
    volt__check_not_on_stack(cx, b);
    if (!node) return volt_pending();
    volt__barrier_wait_op(&op, b);
    return volt__wait_op_poll(cx, node, &op);
}
VOLT_API int volt_barrier_wait_sync(volt_barrier *b, volt_time at_most) {
    volt__wait_op op;
    volt__barrier_wait_op(&op, b);
    return volt__wait_op_sync(&op, at_most);
}

// ---- condition variable
// One await consists of two waits: for a signal, then for the mutex. Cancellation ends the first
// one only, since the await returns with the mutex locked in every case. A waiter is linked before
// it unlocks the mutex, so it misses no signal sent after that unlock. From bit 48 on, above the
// bits that >>sema uses, key_ stores whether the second wait has begun (RELOCKS) and whether the
// await returns -ECANCELED after it (WAS_CANCELLED). During the first wait key_ is 0.
enum { VOLT__COND_RELOCKS = 1, VOLT__COND_WAS_CANCELLED = 2 };
#define VOLT__COND_KEY (VOLT__SEMA_TRIES * 0x10000)

static int64_t volt__cond_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                  volt__wake_list *wakes) {
    (void)wakes;
    if (was != VOLT__IDLE) return 0;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
// FIRED comes from volt_cond_signal: the signal passes to the next waiter, or is lost if there is
// none. CLOSED comes from volt_cond_broadcast: there is nothing to pass on.
static int64_t volt__cond_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                  volt__wake_list *wakes) {
    (void)node;
    if (was == VOLT__FIRED && *op->waiters)
        volt__wake_list_fire_first(wakes, op->waiters, VOLT__FIRED);
    return -ECANCELED;
}
static void volt__cond_wait_op(volt__wait_op *op, volt_cond *c) {
    volt__wait_op_init(op, c, &c->lock_, &c->waiters_, volt__cond_attempt, volt__cond_abandon);
}
// A poll of the second wait, which ignores cancellation.
static volt_poll volt__cond_relock(volt_cx *cx, volt__node *node, volt_mutex *m) {
    volt__wait_op op;
    if (volt__node_state(node) == VOLT__LINKED) return volt__leaf_pending(cx, node, 0);
    volt__sema_wait_op(&op, &m->sema_, VOLT__SEMA_ONE, 1);
    op.task = cx->task_;
    if (volt__wait_op_step(&op, node, 0) == VOLT__PENDING) return volt__leaf_pending(cx, node, 0);
    volt__mutex_set_holder(m, 0);
    return volt__leaf_ready(node, node->key_.permits_ / VOLT__COND_KEY & VOLT__COND_WAS_CANCELLED
                                ? -ECANCELED
                                : 0);
}
VOLT_API volt_poll volt_cond_wait(volt_cx *cx, volt_cond *c, volt_mutex *m) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_EVENT);
    volt__wait_op op;
    volt__check_not_on_stack(cx, c);
    volt__check_not_on_stack(cx, m);
    if (!node) return volt_pending();
    if (node->key_.permits_ != 0) return volt__cond_relock(cx, node, m);
    int is_first = volt__node_state(node) == VOLT__IDLE,
        is_cancelled = volt__scope_is_cancelled(cx);
    volt__cond_wait_op(&op, c);
    volt_poll p = volt__wait_op_poll(cx, node, &op);
    if (is_first) { // pending: linked; ready: cancelled before the wait, the mutex stays locked
        if (volt_is_pending(p)) volt_mutex_unlock(m);
        return p;
    }
    if (volt_is_pending(p)) return p;
    node->kind_ = VOLT__LEAF_EVENT; // the second wait
    node->key_.permits_ = VOLT__COND_KEY *
                 (VOLT__COND_RELOCKS + (is_cancelled ? VOLT__COND_WAS_CANCELLED : 0));
    return volt__cond_relock(cx, node, m);
}
#ifdef VOLT_SINGLE_THREAD
// A wait could only time out: no other thread could signal, or unlock the mutex, while this one
// blocks.
VOLT_API int volt_cond_wait_sync(volt_cond *c, volt_mutex *m, volt_time at_most) {
    (void)c, (void)m, (void)at_most;
    return VOLT_TLS_GET() ? -EDEADLK : -ETIMEDOUT;
}
#else
VOLT_API int volt_cond_wait_sync(volt_cond *c, volt_mutex *m, volt_time at_most) {
    volt__thread_waiter b;
    volt__wait_op op;
    if (VOLT_TLS_GET()) return -EDEADLK;
    volt__cond_wait_op(&op, c);
    volt__thread_waiter_init(&b);
    (void)volt__wait_op_step(&op, &b.node, 0); // linked
    volt_mutex_unlock(m);
    int64_t rc = 0;
    if (volt__parker_wait(&b.parker, volt__deadline(at_most)) < 0)
        rc = volt__wait_op_time_out(&op, &b);
    // A fired waiter takes the lock once more, as a barrier: the thread that fired it has finished
    // with *c by then.
    if (rc != -ECANCELED) (void)volt__wait_op_step(&op, &b.node, 0);
    int locked = volt_mutex_lock_sync(m, VOLT_NEVER);
    (void)locked; // always 0: no deadline
    return rc == -ECANCELED ? -ETIMEDOUT : 0;
}
#endif
VOLT_API void volt_cond_signal(volt_cond *c) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&c->lock_);
    if (c->waiters_) volt__wake_list_fire_first(&wakes, &c->waiters_, VOLT__FIRED);
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
}
VOLT_API void volt_cond_broadcast(volt_cond *c) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&c->lock_);
    volt__wake_list_fire_all(&wakes, &c->waiters_, VOLT__CLOSED);
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
}

//==================================================================================================
// >>chan  the core of channels: buffer, grants, rendezvous
//==================================================================================================
// A volt_chan is a FIFO of at most cap_ messages of elem_ bytes, from many senders to many
// receivers; without capacity it is a rendezvous (see below). This section has the steps of send,
// receive and reserve; >>bounded makes the public functions of them. The buffer has len_ messages,
// the oldest in slot head_. Waiting sends and reserves are linked in senders_, waiting receives in
// receivers_, waits for the close in watchers_.
//   - A grant reserves a message or a slot for a waiter, which uses it in its own step. No message
//     in particular is reserved: each receiver takes the oldest one when its step runs.
//   - Granted messages and slots are invisible to others, so no caller overtakes a waiter. A grant
//     that is not used passes to the next waiter.
//   - n_slots_granted_ also counts the slots of reservations, which no waiter owns, and which
//     n_slots_reserved_ counts alone: a send without a reservation must not use up a grant.
//   - No sender waits while volt__chan_room is above 0, and no receiver while volt__chan_ready is:
//     volt__chan_grant_waiters restores this after each change.
// Any thread may take a step, under lock_: any two operations on one channel are ordered by it.
// elem_, cap_, slots_, buf_ and rt_ are set once; volt_chan_destroy, which no call may overlap,
// clears buf_ and rt_. Of the other fields only is_closed_ is read without the lock, by
// volt_chan_is_closed [C1].

// Called under lock. Returns the number of slots that are free and not granted. It is always 0 for
// a rendezvous, whose only slot is for reservations.
static uint32_t volt__chan_room(const volt_chan *c) {
    uint32_t used = c->len_ + c->n_slots_granted_;
    return used < c->cap_ ? c->cap_ - used : 0;
}
// Called under lock. Returns the number of messages that are not granted.
static uint32_t volt__chan_ready(const volt_chan *c) { return c->len_ - c->n_msgs_granted_; }
// Returns the slot at distance i from the oldest message. The sum does not wrap: slots_ < 2^31.
static char *volt__chan_slot(const volt_chan *c, uint32_t i) {
    uint32_t at = c->head_ + i;
    if (at >= c->slots_) at -= c->slots_;
    return c->buf_ + (size_t)at * c->elem_;
}
// Copies 8 or 4 bytes without a call, since most elements are a pointer or a number. Returns 1, or
// 0 for any other size, with nothing copied. The asm hides the objects: a compiler that knew their
// size would warn about the copy that is too long for them.
static inline int volt__copy_word(void *to, const void *from, size_t len) {
    __asm__("" : "+r"(to), "+r"(from));
    if (len == 8) memcpy(to, from, 8);
    else if (len == 4) memcpy(to, from, 4);
    else return 0;
    return 1;
}
static inline void volt__copy(void *to, const void *from, size_t len) {
    if (!volt__copy_word(to, from, len)) memcpy(to, from, len);
}

// ---- rendezvous: a channel without capacity
// cap_ is 0, and the buffer has one slot, for a reservation. A sender and a receiver meet: the one
// that arrives second, the caller of these functions, copies the message from the sender's memory
// to the receiver's and fires the linked node of its partner as TRANSFERRED. This completes the
// partner's wait, even if that wait is cancelled at the same moment. key_ of a linked node is the
// address of the message or of the memory to receive it, or 0 if the wait is for a reservation.
//
// A linked node may be an arm of a select, and then it must win its select when it is met. So each
// select has a claim word, next_ of its frame, which at most one arm wins. To meet an arm, the
// caller first moves the claim word of the arm's select to that arm:
//   from     event  to       done by                    and then
//   unused   link   polling  the select                 -
//   polling  end    idle     the select                 -
//   idle     claim  the arm  the caller, by CAS         the caller copies the message
//   idle     poll   polling  the select                 -
//   the arm  poll   polling  the select                 that arm is polled first, and wins
//   polling  end    the arm  the select                 the same, if that arm had no budget left
//   polling  over   unused   the select                 -
// link: the first arm of the select is linked on a rendezvous. poll, end: a poll of the select
// begins, ends. over: the select returns. unused is NULL.
//
// No arm can be claimed while its select is polling. A caller that finds such an arm fires it as
// RETRY: the arm's task polls it again, and the arm searches for a partner itself. Once the select
// has a winner, the claim word stays at polling while the other arms are cancelled. Two arms of one
// select never meet. An arm is skipped if another arm of its select is claimed, because it leaves
// the list soon.
#define VOLT__SELECT_POLLING ((volt__node *)(uintptr_t)1)
#define VOLT__SELECT_IDLE ((volt__node *)(uintptr_t)2)
enum { VOLT__CLAIM_IS_OURS, VOLT__CLAIM_IS_BUSY, VOLT__CLAIM_IS_GONE };

// Returns the frame of the select that this node is an arm of, or NULL if it is no arm. A child
// function that an arm polls has a node of its own, which is no arm.
static volt__node *volt__select_of(volt__node *node) {
    return node->shield_base_ & VOLT__IN_SELECT ? VOLT__CONTAINER(volt_arm, node_, node)->parent_
                                                : NULL;
}
// Called under lock_ of the channel in which `node` is linked. So the frame of its select exists: a
// select does not return before its arms are unlinked, under that lock. own_select is the select
// that the caller's own wait belongs to, or NULL. Returns
//   IS_OURS  the node is no arm of a select, or the claim has succeeded
//   IS_BUSY  the node's select is polling
//   IS_GONE  the node belongs to own_select, or another arm of its select is claimed
static int volt__select_claim(volt__node *node, const volt__node *own_select) {
    volt__node *select = volt__select_of(node), *was = VOLT__SELECT_IDLE;
    if (!select) return VOLT__CLAIM_IS_OURS;
    if (select == own_select) return VOLT__CLAIM_IS_GONE;
    // [X1] with select
    if (volt__cas_acq_rel(&select->next_, &was, node)) return VOLT__CLAIM_IS_OURS;
    return was == VOLT__SELECT_POLLING ? VOLT__CLAIM_IS_BUSY : VOLT__CLAIM_IS_GONE;
}
// Called by the select's task. Returns the arm that was claimed since the last poll, or that
// volt__select_end_poll has put back; NULL if there is none.
static volt__node *volt__select_begin_poll(volt__node *select) {
    // rlx: NULL until this same task links an arm that waits for a rendezvous
    if (!volt__load_rlx(&select->next_)) return NULL;
    volt__node *was = volt__xchg_acq_rel(&select->next_, VOLT__SELECT_POLLING); // [X1] with claim
    return was == VOLT__SELECT_IDLE || was == VOLT__SELECT_POLLING ? NULL : was;
}
// Called by the select's task while the select has no winner. `claimed` is an arm that is claimed
// but could not return for lack of budget. If it is NULL, any arm can be claimed from here on.
static void volt__select_end_poll(volt__node *select, volt__node *claimed) {
    if (!volt__load_rlx(&select->next_)) return; // rlx: our own while it is POLLING
    volt__store_rel(&select->next_, claimed ? claimed : VOLT__SELECT_IDLE); // [X1] with claim
}
// Called under lock. `was` is RETRY for an arm that was fired to search for a partner itself, and
// found none: it returns to the head of the list. The select is being polled, hence POLLING.
static void volt__rendezvous_link(const volt__wait_op *op, volt__node *node, uint8_t was) {
    volt__node *select = volt__select_of(node);
    if (select) volt__store_rlx(&select->next_, VOLT__SELECT_POLLING); // rlx: published by the lock
    node->key_.data_ = op->data;
    volt__wait_op_link(op, node, was == VOLT__RETRY);
}
static char *volt__rendezvous_data(const volt__node *node) { // NULL: waits for a reservation
    return (char *)node->key_.data_;
}
// Called under lock. Unlinks and returns the first node that can be met. Returns NULL if there is
// none, or if a wait for a reservation comes before it: that wait is granted as soon as a receiver
// is linked. Arms of own_select are skipped. Arms whose select is polling are fired as RETRY.
static volt__node *volt__rendezvous_partner(volt__node **list, const volt__node *own_select,
                                            volt__wake_list *wakes) {
    volt__node *node = *list, *last = node ? node->prev_ : NULL, *next;
    for (int is_last = !node; !is_last; node = next) {
        is_last = node == last;
        next = node->next_;
        int is_reserve = !volt__rendezvous_data(node);
        int is_own = own_select && volt__select_of(node) == own_select;
        if (is_reserve && !is_own) return NULL;
        if (is_reserve) continue;
        int claim = volt__select_claim(node, own_select);
        if (claim == VOLT__CLAIM_IS_GONE) continue;
        volt__list_remove(list, node);
        if (claim == VOLT__CLAIM_IS_OURS) return node;
        volt__wake_list_fire(wakes, node, VOLT__RETRY);
    }
    return NULL;
}
// Called under lock_ of the channel in which `node` is linked. Returns 1 if the node cannot be met:
// it belongs to own_select, which may be NULL, or another arm of its select is claimed. Else 0.
static int volt__select_is_gone(volt__node *node, const volt__node *own_select) {
    volt__node *select = volt__select_of(node);
    if (!select) return 0;
    if (select == own_select) return 1;
    // rlx: a claim that a waiting sender has seen is seen here as well, since the lock orders them
    volt__node *claimed = volt__load_rlx(&select->next_);
    return claimed != VOLT__SELECT_POLLING && claimed != VOLT__SELECT_IDLE;
}
// Called under lock. Returns 1 if the list has a node that is not gone, else 0.
static int volt__rendezvous_has_other(volt__node *list, const volt__node *own_select) {
    volt__node *node = list;
    if (!node) return 0;
    do {
        if (!volt__select_is_gone(node, own_select)) return 1;
        node = node->next_;
    } while (node != list);
    return 0;
}
// Called under lock. Copies at most n messages from v to waiting receivers if is_send, else from
// waiting senders to v. Returns the number. It is 0 while the buffer holds a message: that one came
// by a reservation, and is received first. It is also 0 while a reservation is held and other nodes
// wait on the caller's side: they come first. (Without a reservation these have no partner: they
// would have met it.)
static uint32_t volt__rendezvous(volt_chan *c, char *v, uint32_t n, int is_send,
                                 const volt__node *own_select, volt__wake_list *wakes) {
    volt__node **list = is_send ? &c->receivers_ : &c->senders_, *other;
    uint32_t done = 0;
    if (c->len_ > 0) return 0;
    volt__node *ours = is_send ? c->senders_ : c->receivers_; // linked earlier: they come first
    if (c->n_slots_granted_ > 0 && volt__rendezvous_has_other(ours, own_select)) return 0;
    for (; done < n; done++) {
        if ((other = volt__rendezvous_partner(list, own_select, wakes)) == NULL) break;
        char *theirs = volt__rendezvous_data(other);
        volt__copy(is_send ? theirs : v, is_send ? v : theirs, c->elem_);
        volt__wake_list_fire(wakes, other, VOLT__TRANSFERRED);
        v += c->elem_;
    }
    return done;
}
// Called under lock when a reservation has ended or its message was received. On a rendezvous whose
// slot is free now, senders and receivers that are linked meet, in order. A sender in a select is
// fired as RETRY instead, because the selects of both sides cannot be claimed in one step.
static void volt__rendezvous_retry(volt_chan *c, volt__wake_list *wakes) {
    volt__node *node = c->senders_, *last = node ? node->prev_ : NULL, *next, *to;
    if (c->cap_ > 0 || c->len_ + c->n_slots_granted_ > 0 || !c->receivers_) return;
    for (int is_last = !node; !is_last; node = next) {
        is_last = node == last;
        next = node->next_;
        if (!volt__rendezvous_data(node)) return; // volt__rendezvous_reserve grants it
        uint8_t state = VOLT__RETRY;
        if (!volt__select_of(node)) {
            to = volt__rendezvous_partner(&c->receivers_, NULL, wakes);
            if (!to) return;
            volt__copy(volt__rendezvous_data(to), volt__rendezvous_data(node), c->elem_);
            volt__wake_list_fire(wakes, to, VOLT__TRANSFERRED);
            state = VOLT__TRANSFERRED;
        }
        volt__list_remove(&c->senders_, node);
        volt__wake_list_fire(wakes, node, state);
    }
}
// Called under lock. Returns 1 if the slot is free and a receiver waits that can be met, else 0. No
// sender waits then, unless it is an arm of the same select as that receiver.
static int volt__rendezvous_can_reserve(const volt_chan *c, const volt__node *own_select) {
    return c->len_ + c->n_slots_granted_ == 0 &&
           volt__rendezvous_has_other(c->receivers_, own_select);
}
// Called under lock. Grants the slot to the first wait for a reservation that can have it.
static void volt__rendezvous_reserve(volt_chan *c, volt__wake_list *wakes) {
    volt__node *node = c->senders_, *last = node ? node->prev_ : NULL, *next;
    for (int is_last = !node; !is_last; node = next) {
        is_last = node == last;
        next = node->next_;
        if (volt__rendezvous_data(node) || !volt__rendezvous_can_reserve(c, volt__select_of(node)))
            continue;
        volt__list_remove(&c->senders_, node);
        c->n_slots_granted_++;
        volt__wake_list_fire(wakes, node, VOLT__FIRED);
    }
}

// ---- grants and the buffer
// Called under lock. Grants ready messages and free slots to the waiters, in order of arrival.
// Fires all receivers if the channel is closed and drained: it is empty, and no slot is reserved
// that could still be filled.
static void volt__chan_grant_waiters(volt_chan *c, volt__wake_list *wakes) {
    while (c->receivers_ && volt__chan_ready(c) > 0) {
        c->n_msgs_granted_++;
        volt__wake_list_fire_first(wakes, &c->receivers_, VOLT__FIRED);
    }
    if (c->cap_ == 0) volt__rendezvous_reserve(c, wakes);
    while (c->senders_ && volt__chan_room(c) > 0) {
        c->n_slots_granted_++;
        volt__wake_list_fire_first(wakes, &c->senders_, VOLT__FIRED);
    }
    if (c->is_closed_ && c->len_ == 0 && c->n_slots_granted_ == 0)
        volt__wake_list_fire_all(wakes, &c->receivers_, VOLT__CLOSED);
    VOLT_ASSERT(c->n_msgs_granted_ <= c->len_ && c->len_ + c->n_slots_granted_ <= c->slots_);
}
static inline void volt__chan_buffer_push(volt_chan *c, const char *v) {
    VOLT_ASSERT(c->len_ < c->slots_);
    volt__copy(volt__chan_slot(c, c->len_++), v, c->elem_);
}
// An empty buffer is filled from slot 0 again, so that a large one that stays nearly empty uses few
// cache lines.
static inline void volt__chan_buffer_drop_first(volt_chan *c) {
    VOLT_ASSERT(c->len_ > 0);
    c->len_--;
    c->head_ = c->len_ == 0 || c->head_ + 1 == c->slots_ ? 0 : c->head_ + 1;
}
static inline void volt__chan_buffer_pop(volt_chan *c, char *v) {
    volt__copy(v, volt__chan_slot(c, 0), c->elem_);
    volt__chan_buffer_drop_first(c);
}
// The fast paths handle the usual case: the lock is free, there is room or a ready message, no
// waiter of the other side has to be granted anything, and the element has 8 or 4 bytes. Results of
// these functions: all below but LINKED. volt__chan_send_one and volt__chan_recv_one give all but
// CONTENDED:
//   CONTENDED  nothing is done, the lock is not taken
//   LOCKED     nothing is done, the caller holds the lock
//   LINKED     the node is linked, the lock is released
//   DONE       the message is sent or received, the lock is released
enum { VOLT__FAST_CONTENDED, VOLT__FAST_LOCKED, VOLT__FAST_LINKED, VOLT__FAST_DONE };

static inline int volt__chan_send_fast(volt_chan *c, const void *v) {
    if (VOLT__UNLIKELY(!volt__try_lock(&c->lock_))) return VOLT__FAST_CONTENDED;
    if (VOLT__UNLIKELY(c->receivers_ || c->is_closed_ || c->len_ + c->n_slots_granted_ >= c->cap_))
        return VOLT__FAST_LOCKED;
    VOLT_ASSERT(!c->senders_);
    if (VOLT__UNLIKELY(!volt__copy_word(volt__chan_slot(c, c->len_), v, c->elem_)))
        return VOLT__FAST_LOCKED;
    c->len_++;
    volt__unlock(&c->lock_);
    return VOLT__FAST_DONE;
}
static inline int volt__chan_recv_fast(volt_chan *c, void *v) {
    if (VOLT__UNLIKELY(!volt__try_lock(&c->lock_))) return VOLT__FAST_CONTENDED;
    if (VOLT__UNLIKELY(c->senders_ || volt__chan_ready(c) == 0)) return VOLT__FAST_LOCKED;
    VOLT_ASSERT(!c->receivers_);
    if (VOLT__UNLIKELY(!volt__copy_word(v, volt__chan_slot(c, 0), c->elem_)))
        return VOLT__FAST_LOCKED;
    volt__chan_buffer_drop_first(c);
    volt__unlock(&c->lock_);
    return VOLT__FAST_DONE;
}

// ---- send, receive, reserve
// Called under lock. Returns the number of messages sent, -EAGAIN if the caller has to wait, or
// -EPIPE if the channel is closed. node_or_null is the node of the wait, NULL in a try_ function;
// `was` is its state, and FIRED means that it has a grant.
static int volt__chan_send_some(volt_chan *c, const void *v, uint32_t n, volt__node *node_or_null,
                                uint8_t was, volt__wake_list *wakes) {
    int has_grant = was == VOLT__FIRED;
    if (has_grant) c->n_slots_granted_--;
    if (c->is_closed_) {
        volt__chan_grant_waiters(c, wakes);
        return -EPIPE;
    }
    if (c->cap_ == 0) {
        char *message = (char *)(uintptr_t)v; // read only
        volt__node *select = node_or_null ? volt__select_of(node_or_null) : NULL;
        uint32_t sent = volt__rendezvous(c, message, n, 1, select, wakes);
        return sent > 0 ? (int)sent : -EAGAIN;
    }
    uint32_t room = !has_grant && c->senders_ ? 0 : volt__chan_room(c);
    if (room == 0) return -EAGAIN;
    n = volt__min32(n, room);
    const char *from = (const char *)v;
    for (uint32_t i = 0; i < n; i++, from += c->elem_) volt__chan_buffer_push(c, from);
    volt__chan_grant_waiters(c, wakes);
    return (int)n;
}
// Called under lock. Returns the number of messages received, 0 if the channel is closed and
// drained, or -EAGAIN if the caller has to wait. node_or_null and `was` as in volt__chan_send_some.
static int volt__chan_recv_some(volt_chan *c, void *v, uint32_t n, volt__node *node_or_null,
                                uint8_t was, volt__wake_list *wakes) {
    volt__node *select = node_or_null ? volt__select_of(node_or_null) : NULL;
    if (was == VOLT__FIRED) c->n_msgs_granted_--;
    uint32_t ready = volt__min32(n, volt__chan_ready(c)), n_met = 0;
    char *to = (char *)v;
    for (uint32_t i = 0; i < ready; i++, to += c->elem_) volt__chan_buffer_pop(c, to);
    if (c->cap_ == 0) n_met = volt__rendezvous(c, to, n - ready, 0, select, wakes);
    if (ready > 0) volt__rendezvous_retry(c, wakes);
    if (ready + n_met == 0)
        return c->is_closed_ && c->len_ + c->n_slots_granted_ == 0 ? 0 : -EAGAIN;
    volt__chan_grant_waiters(c, wakes);
    return (int)(ready + n_met);
}
static int64_t volt__chan_send_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                       volt__wake_list *wakes) {
    volt_chan *c = (volt_chan *)op->on;
    if (was == VOLT__TRANSFERRED) return 1;
    int rc = volt__chan_send_some(c, op->data, op->n, node, was, wakes);
    if (rc != -EAGAIN) return rc;
    if (c->cap_ == 0) volt__rendezvous_link(op, node, was);
    else volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
static int64_t volt__chan_send_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                       volt__wake_list *wakes) {
    volt_chan *c = (volt_chan *)op->on;
    (void)node;
    if (was == VOLT__TRANSFERRED) return 1; // the message has been sent
    if (was == VOLT__FIRED) {
        c->n_slots_granted_--;
        volt__rendezvous_retry(c, wakes);
    }
    volt__chan_grant_waiters(c, wakes);
    return -ECANCELED;
}
static int64_t volt__chan_recv_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                       volt__wake_list *wakes) {
    volt_chan *c = (volt_chan *)op->on;
    if (was == VOLT__TRANSFERRED) return 1;
    int rc = volt__chan_recv_some(c, op->data, op->n, node, was, wakes);
    if (rc != -EAGAIN) return rc;
    if (c->cap_ == 0) volt__rendezvous_link(op, node, was);
    else volt__wait_op_link(op, node, 0);
    volt__chan_grant_waiters(c, wakes); // a rendezvous has room now
    return VOLT__PENDING;
}
static int64_t volt__chan_recv_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                       volt__wake_list *wakes) {
    volt_chan *c = (volt_chan *)op->on;
    (void)node;
    if (was == VOLT__TRANSFERRED) return 1; // the message has been received
    if (was == VOLT__FIRED) c->n_msgs_granted_--;
    volt__chan_grant_waiters(c, wakes);
    return -ECANCELED;
}
// Called under lock. Returns 1 if a reservation need not wait, else 0.
static int volt__chan_can_reserve(const volt_chan *c, const volt__node *own_select) {
    if (c->cap_ == 0) return volt__rendezvous_can_reserve(c, own_select);
    return !c->senders_ && volt__chan_room(c) > 0;
}
// Called under lock.
static void volt__chan_take_reservation(volt_chan *c) {
    c->n_slots_granted_++;
    c->n_slots_reserved_++;
}
static int64_t volt__chan_reserve_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                          volt__wake_list *wakes) {
    volt_chan *c = (volt_chan *)op->on;
    int has_grant = was == VOLT__FIRED;
    if (c->is_closed_) {
        if (has_grant) c->n_slots_granted_--;
        volt__chan_grant_waiters(c, wakes);
        return -EPIPE;
    }
    if (has_grant) { // the grant becomes the reservation
        c->n_slots_reserved_++;
        return 0;
    }
    if (!volt__chan_can_reserve(c, volt__select_of(node))) {
        if (c->cap_ == 0) volt__rendezvous_link(op, node, was); // op->data is NULL
        else volt__wait_op_link(op, node, 0);
        return VOLT__PENDING;
    }
    volt__chan_take_reservation(c);
    return 0;
}
static int64_t volt__chan_closed_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                         volt__wake_list *wakes) {
    volt_chan *c = (volt_chan *)op->on;
    (void)was, (void)wakes;
    if (c->is_closed_) return 0;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
static void volt__chan_send_wait_op(volt__wait_op *op, volt_chan *c, const void *v, uint32_t n) {
    volt__wait_op_init(op, c, &c->lock_, &c->senders_, volt__chan_send_attempt,
                       volt__chan_send_abandon);
    op->data = (void *)(uintptr_t)v;
    op->n = n;
}
static void volt__chan_recv_wait_op(volt__wait_op *op, volt_chan *c, void *v, uint32_t n) {
    volt__wait_op_init(op, c, &c->lock_, &c->receivers_, volt__chan_recv_attempt,
                       volt__chan_recv_abandon);
    op->data = v;
    op->n = n;
}

// ---- polls and blocking waits
// Charges the budget and checks the size of the element. Returns 1 if the poll goes on, or 0 if it
// is over with the result *out.
static int volt__chan_poll_begin(volt_cx *cx, volt__node *node, size_t size, size_t elem,
                                 volt_poll *out) {
    *out = volt_pending();
    if (!volt__budget_charge(cx)) return 0;
    VOLT__EXPECT_CX(cx, size == elem, "`size` is not that of the channel's elements");
    if (VOLT__LIKELY(size == elem)) return 1;
    *out = volt__leaf_ready(node, -EINVAL);
    return 0;
}
static volt_poll volt__chan_poll(volt_cx *cx, volt__wait_op *op, size_t size, size_t elem) {
    volt__node *node = volt__leaf(cx, VOLT__LEAF_CHAN);
    volt_poll p;
    volt__check_not_on_stack(cx, op->on);
    if (!volt__chan_poll_begin(cx, node, size, elem, &p)) return p;
    return op->n > 0 ? volt__wait_op_poll(cx, node, op) : volt__leaf_ready(node, -EINVAL);
}
static int volt__chan_sync(volt__wait_op *op, size_t size, size_t elem, volt_time at_most) {
    return size == elem && op->n > 0 ? volt__wait_op_sync(op, at_most) : -EINVAL;
}
// The steps return a number of messages; a send of one message returns 0.
static int volt__send_result(int64_t rc) { return rc > 0 ? 0 : (int)rc; }

// ---- creation and destruction
VOLT_API int volt_chan_init(volt_chan *c, void *buf, size_t elem, size_t cap) {
    memset(c, 0, sizeof *c);
    if (elem == 0 || elem > UINT32_MAX || cap > UINT32_MAX / 2) return -EINVAL;
    c->buf_ = (char *)buf;
    c->elem_ = (uint32_t)elem;
    c->cap_ = (uint32_t)cap;
    c->slots_ = cap > 0 ? c->cap_ : 1;
    return 0;
}
VOLT_API int volt_chan_create(volt_rt *rt, volt_chan *c, size_t elem, size_t cap) {
    memset(c, 0, sizeof *c);
    if (elem == 0 || elem > INT32_MAX || cap > INT32_MAX / elem) return -EINVAL;
    size_t bytes = elem * (cap > 0 ? cap : 1);
    void *buf = rt->cfg.alloc.alloc(rt->cfg.alloc.user, bytes, 16);
    if (!buf) return -ENOMEM;
    int rc = volt_chan_init(c, buf, elem, cap);
    VOLT_ASSERT(rc == 0);
    c->rt_ = rt;
    return rc;
}
VOLT_API void volt_chan_destroy(volt_chan *c) {
    volt_rt *rt = c->rt_;
    if (!rt) return;
    if (c->senders_ || c->receivers_ || c->watchers_)
        volt__misuse_current("volt_chan_destroy: the channel has waiters");
    rt->cfg.alloc.free(rt->cfg.alloc.user, c->buf_, (size_t)c->elem_ * c->slots_);
    c->rt_ = NULL;
    c->buf_ = NULL;
}

//==================================================================================================
// >>bounded  bounded channels: sends, receives, reservations, closing
//==================================================================================================
// The public functions of a volt_chan, with a buffer or without (rendezvous). They are made of the
// steps in >>chan. A send or receive of one message by a task takes the first way that fits:
//   _fast      the usual case, see volt__chan_send_fast. The frame's node is not touched
//   _one       an open channel with a buffer, and a task that is not cancelled. If it has to wait,
//              its node is linked directly, without a wait op
//   the rest   a wait op: rendezvous, closed channels, cancelled tasks
// Sends and receives of several messages, blocked threads and reservations use a wait op, too. A
// try_ function for one message takes the first way if it fits; every other try_ call takes one
// step under the lock. None of them waits.
//
// A channel closes for good, by volt_chan_close or when the last retained sender or the last
// retained receiver is released. Messages in the buffer and reserved slots outlast the close.
//
// Functions that take a volt_cx run inside a poll, `_sync` functions on a thread that runs no
// worker; any thread may call the others. All but volt_chan_is_closed and volt_chan_cap take lock_.

// ---- one message
// volt__chan_send_one and volt__chan_recv_one do the work of the attempt functions of >>chan for a
// task on an open channel with a buffer. They are called under lock, and release it unless they
// return LOCKED.

// Called under lock. Links the node and unlocks.
static inline int volt__chan_link(volt_cx *cx, volt_chan *c, volt__node **list, volt__node *node) {
    volt__node_bind(node, cx->task_, c);
    volt__list_push(list, node);
    volt__unlock(&c->lock_);
    return VOLT__FAST_LINKED;
}
// Called under lock after a push: grants the message to the first waiting receiver, and unlocks.
static inline void volt__chan_grant_message(volt_chan *c) {
    if (!c->receivers_) {
        volt__unlock(&c->lock_);
        return;
    }
    c->n_msgs_granted_++;
    volt__fire_first_and_unlock(&c->receivers_, VOLT__FIRED, &c->lock_);
}
// Called under lock after a pop: grants the free slot to the first waiting sender, and unlocks.
static inline void volt__chan_grant_slot(volt_chan *c) {
    if (!c->senders_) {
        volt__unlock(&c->lock_);
        return;
    }
    c->n_slots_granted_++;
    volt__fire_first_and_unlock(&c->senders_, VOLT__FIRED, &c->lock_);
}
static int volt__chan_send_one(volt_cx *cx, volt__node *node, volt_chan *c, const void *v) {
    int has_grant = volt__node_state(node) == VOLT__FIRED;
    if (c->is_closed_ || c->cap_ == 0) return VOLT__FAST_LOCKED;
    if (has_grant) {
        c->n_slots_granted_--;
        volt__node_unbind(node, cx->task_);
    } else if (c->senders_ || volt__chan_room(c) == 0) {
        return volt__chan_link(cx, c, &c->senders_, node);
    }
    volt__chan_buffer_push(c, (const char *)v);
    volt__chan_grant_message(c);
    return VOLT__FAST_DONE;
}
static int volt__chan_recv_one(volt_cx *cx, volt__node *node, volt_chan *c, void *v) {
    int has_grant = volt__node_state(node) == VOLT__FIRED;
    if (c->is_closed_ || c->cap_ == 0) return VOLT__FAST_LOCKED;
    if (has_grant) {
        c->n_msgs_granted_--;
        volt__node_unbind(node, cx->task_);
    } else if (volt__chan_ready(c) == 0) {
        return volt__chan_link(cx, c, &c->receivers_, node);
    }
    volt__chan_buffer_pop(c, (char *)v);
    volt__chan_grant_slot(c);
    return VOLT__FAST_DONE;
}
// has_lock: lock_ is held, because the fast path returned LOCKED. It has found budget and the right
// size, so volt__chan_poll_begin does not return 0 then. The same in volt__chan_recv_slow.
static __attribute__((noinline)) volt_poll
volt__chan_send_slow(volt_cx *cx, volt_chan *c, const void *v, size_t size, int has_lock) {
    volt__node *node = volt__leaf(cx, VOLT__LEAF_CHAN);
    volt__wait_op op;
    volt_poll p;
    if (!volt__chan_poll_begin(cx, node, size, c->elem_, &p)) return p;
    if (!has_lock && volt__node_state(node) != VOLT__LINKED && !volt__scope_is_cancelled(cx)) {
        volt__lock(&c->lock_);
        has_lock = 1;
    }
    int done = has_lock ? volt__chan_send_one(cx, node, c, v) : VOLT__FAST_CONTENDED;
    if (done == VOLT__FAST_DONE) return volt__leaf_ready(node, 0);
    if (done == VOLT__FAST_LINKED) return volt__leaf_pending(cx, node, 0);
    volt__chan_send_wait_op(&op, c, v, 1);
    op.has_lock = has_lock;
    p = volt__wait_op_poll(cx, node, &op);
    return volt_is_pending(p) ? p : volt_ready(volt__send_result(volt_value(p)));
}
static __attribute__((noinline)) volt_poll
volt__chan_recv_slow(volt_cx *cx, volt_chan *c, void *v, size_t size, int has_lock) {
    volt__node *node = volt__leaf(cx, VOLT__LEAF_CHAN);
    volt__wait_op op;
    volt_poll p;
    if (!volt__chan_poll_begin(cx, node, size, c->elem_, &p)) return p;
    if (!has_lock && volt__node_state(node) != VOLT__LINKED && !volt__scope_is_cancelled(cx)) {
        volt__lock(&c->lock_);
        has_lock = 1;
    }
    int done = has_lock ? volt__chan_recv_one(cx, node, c, v) : VOLT__FAST_CONTENDED;
    if (done == VOLT__FAST_DONE) return volt__leaf_ready(node, 1);
    if (done == VOLT__FAST_LINKED) return volt__leaf_pending(cx, node, 0);
    volt__chan_recv_wait_op(&op, c, v, 1);
    op.has_lock = has_lock;
    return volt__wait_op_poll(cx, node, &op);
}
VOLT_API volt_poll volt_chan_send(volt_cx *cx, volt_chan *c, const void *v, size_t size) {
    int done = VOLT__FAST_CONTENDED;
    volt__check_not_on_stack(cx, c);
    volt__check_not_on_stack(cx, v);
    if (VOLT__LIKELY(volt__leaf_is_fresh(cx) && size == c->elem_)) {
        done = volt__chan_send_fast(c, v);
        if (VOLT__LIKELY(done == VOLT__FAST_DONE)) {
            cx->budget_--;
            return volt_ready(0);
        }
    }
    return volt__chan_send_slow(cx, c, v, size, done == VOLT__FAST_LOCKED);
}
VOLT_API volt_poll volt_chan_send_n(volt_cx *cx, volt_chan *c, const void *v, size_t size,
                                    uint32_t n) {
    volt__wait_op op;
    volt__check_not_on_stack(cx, v);
    volt__chan_send_wait_op(&op, c, v, n);
    return volt__chan_poll(cx, &op, size, c->elem_);
}
VOLT_API volt_poll volt_chan_recv(volt_cx *cx, volt_chan *c, void *v, size_t size) {
    int done = VOLT__FAST_CONTENDED;
    volt__check_not_on_stack(cx, c);
    volt__check_not_on_stack(cx, v);
    if (VOLT__LIKELY(volt__leaf_is_fresh(cx) && size == c->elem_)) {
        done = volt__chan_recv_fast(c, v);
        if (VOLT__LIKELY(done == VOLT__FAST_DONE)) {
            cx->budget_--;
            return volt_ready(1);
        }
    }
    return volt__chan_recv_slow(cx, c, v, size, done == VOLT__FAST_LOCKED);
}
VOLT_API volt_poll volt_chan_recv_n(volt_cx *cx, volt_chan *c, void *v, size_t size, uint32_t n) {
    volt__wait_op op;
    volt__check_not_on_stack(cx, v);
    volt__chan_recv_wait_op(&op, c, v, n);
    return volt__chan_poll(cx, &op, size, c->elem_);
}
VOLT_API int volt_chan_send_sync(volt_chan *c, const void *v, size_t size, volt_time at_most) {
    return volt__send_result(volt_chan_send_n_sync(c, v, size, 1, at_most));
}
VOLT_API int volt_chan_send_n_sync(volt_chan *c, const void *v, size_t size, uint32_t n,
                                   volt_time at_most) {
    volt__wait_op op;
    volt__chan_send_wait_op(&op, c, v, n);
    return volt__chan_sync(&op, size, c->elem_, at_most);
}
VOLT_API int volt_chan_recv_sync(volt_chan *c, void *v, size_t size, volt_time at_most) {
    return volt_chan_recv_n_sync(c, v, size, 1, at_most);
}
VOLT_API int volt_chan_recv_n_sync(volt_chan *c, void *v, size_t size, uint32_t n,
                                   volt_time at_most) {
    volt__wait_op op;
    volt__chan_recv_wait_op(&op, c, v, n);
    return volt__chan_sync(&op, size, c->elem_, at_most);
}
VOLT_API int volt_chan_try_send(volt_chan *c, const void *v, size_t size) {
    return volt__send_result(volt_chan_try_send_n(c, v, size, 1));
}
VOLT_API int volt_chan_try_send_n(volt_chan *c, const void *v, size_t size, uint32_t n) {
    volt__wake_list wakes;
    if (size != c->elem_ || n == 0) return -EINVAL;
    int done = n == 1 ? volt__chan_send_fast(c, v) : VOLT__FAST_CONTENDED;
    if (VOLT__LIKELY(done == VOLT__FAST_DONE)) return 1;
    if (done == VOLT__FAST_CONTENDED) volt__lock(&c->lock_);
    volt__wake_list_init(&wakes);
    int rc = volt__chan_send_some(c, v, n, NULL, VOLT__IDLE, &wakes);
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
    return rc;
}
// A function of its own, so that the fast path needs no stack frame. (For try_send the same split
// costs 1 ns.)
static __attribute__((noinline)) int volt__chan_try_recv_slow(volt_chan *c, void *v, uint32_t n,
                                                              int has_lock) {
    volt__wake_list wakes;
    if (!has_lock) volt__lock(&c->lock_);
    volt__wake_list_init(&wakes);
    int rc = volt__chan_recv_some(c, v, n, NULL, VOLT__IDLE, &wakes);
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
    return rc;
}
VOLT_API int volt_chan_try_recv(volt_chan *c, void *v, size_t size) {
    return volt_chan_try_recv_n(c, v, size, 1);
}
VOLT_API int volt_chan_try_recv_n(volt_chan *c, void *v, size_t size, uint32_t n) {
    if (size != c->elem_ || n == 0) return -EINVAL;
    int done = n == 1 ? volt__chan_recv_fast(c, v) : VOLT__FAST_CONTENDED;
    if (VOLT__LIKELY(done == VOLT__FAST_DONE)) return 1;
    return volt__chan_try_recv_slow(c, v, n, done == VOLT__FAST_LOCKED);
}

// ---- reservations, closing
// Waits without a message pass the checks of volt__chan_poll with n 1 and the size of an element.
static void volt__chan_reserve_wait_op(volt__wait_op *op, volt_chan *c) {
    volt__wait_op_init(op, c, &c->lock_, &c->senders_, volt__chan_reserve_attempt,
                       volt__chan_send_abandon);
    op->n = 1;
}
static void volt__chan_closed_wait_op(volt__wait_op *op, volt_chan *c) {
    volt__wait_op_init(op, c, &c->lock_, &c->watchers_, volt__chan_closed_attempt,
                       volt__abandon_nothing);
    op->n = 1;
}
VOLT_API volt_poll volt_chan_reserve(volt_cx *cx, volt_chan *c) {
    volt__wait_op op;
    volt__chan_reserve_wait_op(&op, c);
    return volt__chan_poll(cx, &op, c->elem_, c->elem_);
}
VOLT_API int volt_chan_reserve_sync(volt_chan *c, volt_time at_most) {
    volt__wait_op op;
    volt__chan_reserve_wait_op(&op, c);
    return volt__wait_op_sync(&op, at_most);
}
VOLT_API volt_poll volt_chan_wait_closed(volt_cx *cx, volt_chan *c) {
    volt__wait_op op;
    volt__chan_closed_wait_op(&op, c);
    return volt__chan_poll(cx, &op, c->elem_, c->elem_);
}
VOLT_API int volt_chan_wait_closed_sync(volt_chan *c, volt_time at_most) {
    volt__wait_op op;
    volt__chan_closed_wait_op(&op, c);
    return volt__wait_op_sync(&op, at_most);
}
VOLT_API int volt_chan_try_reserve(volt_chan *c) {
    volt__lock(&c->lock_);
    int rc = c->is_closed_ ? -EPIPE : volt__chan_can_reserve(c, NULL) ? 0 : -EAGAIN;
    if (rc == 0) volt__chan_take_reservation(c);
    volt__unlock(&c->lock_);
    return rc;
}
// Ends one reservation: sends *v, or nothing if v is NULL. Returns 0, or -EINVAL if no slot is
// reserved.
static int volt__chan_use_reservation(volt_chan *c, const void *v) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&c->lock_);
    int is_reserved = c->n_slots_reserved_ > 0;
    if (is_reserved) {
        c->n_slots_reserved_--;
        c->n_slots_granted_--;
        if (v) volt__chan_buffer_push(c, (const char *)v);
        volt__rendezvous_retry(c, &wakes);
        volt__chan_grant_waiters(c, &wakes);
    }
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_reserved ? 0 : -EINVAL;
}
VOLT_API int volt_chan_send_reserved(volt_chan *c, const void *v, size_t size) {
    return size == c->elem_ ? volt__chan_use_reservation(c, v) : -EINVAL;
}
VOLT_API void volt_chan_unreserve(volt_chan *c) {
    int rc = volt__chan_use_reservation(c, NULL);
    if (VOLT_DEBUG && rc != 0) volt__misuse_current("volt_chan_unreserve: no slot is reserved");
}
// Called under lock. Ends the waits of senders and of watchers at once, those of receivers when the
// channel is drained.
static void volt__chan_close_locked(volt_chan *c, volt__wake_list *wakes) {
    volt__store_rel(&c->is_closed_, 1); // [C1] with is_closed
    volt__wake_list_fire_all(wakes, &c->senders_, VOLT__CLOSED);
    volt__wake_list_fire_all(wakes, &c->watchers_, VOLT__CLOSED);
    volt__chan_grant_waiters(c, wakes);
}
VOLT_API void volt_chan_close(volt_chan *c) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&c->lock_);
    volt__chan_close_locked(c, &wakes);
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
}
VOLT_API int volt_chan_is_closed(const volt_chan *c) {
    return (int)volt__load_acq(&c->is_closed_); // [C1] with close
}
VOLT_API void volt_chan_retain(volt_chan *c, int side) {
    volt__lock(&c->lock_);
    if (side & VOLT_CHAN_SENDER) c->n_senders_++;
    if (side & VOLT_CHAN_RECEIVER) c->n_receivers_++;
    volt__unlock(&c->lock_);
}
VOLT_API void volt_chan_release(volt_chan *c, int side) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&c->lock_);
    int is_last = 0;
    if ((side & VOLT_CHAN_SENDER) && c->n_senders_ == 0)
        volt__misuse_current("volt_chan_release: no sender is retained");
    if ((side & VOLT_CHAN_RECEIVER) && c->n_receivers_ == 0)
        volt__misuse_current("volt_chan_release: no receiver is retained");
    if (side & VOLT_CHAN_SENDER) is_last |= --c->n_senders_ == 0;
    if (side & VOLT_CHAN_RECEIVER) is_last |= --c->n_receivers_ == 0;
    if (is_last) volt__chan_close_locked(c, &wakes);
    volt__unlock(&c->lock_);
    volt__wake_list_run_if_any(&wakes);
}
VOLT_API uint32_t volt_chan_len(volt_chan *c) {
    volt__lock(&c->lock_);
    uint32_t n = c->len_;
    volt__unlock(&c->lock_);
    return n;
}
VOLT_API uint32_t volt_chan_cap(const volt_chan *c) { return c->cap_; }

//==================================================================================================
// >>oneshot  oneshot and queue
//==================================================================================================
// Two channels whose senders never wait: a oneshot carries one value, a queue any number of
// messages to one receiver. A message of a queue lies in memory of its sender and contains the node
// that links it.
// Functions that take a volt_cx run inside a poll, `_sync` functions on a thread that runs no
// worker; any thread may call the others. But only one thread at a time may send on a oneshot, and
// only one at a time may receive from a queue.

// ---- oneshot
// A waitword that opens when the first send or close sets ENDED. A send sets HAS_VALUE as well; the
// receive that gets the value clears it.
//   - value_ is written before HAS_VALUE is set, and read only by the receive that has cleared
//     HAS_VALUE.
//   - A send that a close overtakes writes value_ but does not set HAS_VALUE.
//   - Any number of receivers may wait: one gets the value, the others -EPIPE.
enum { VOLT__ONESHOT_ENDED = VOLT__WAITWORD_FLAG, VOLT__ONESHOT_HAS_VALUE = 4 };

// Only the first send or close changes the word.
static uint32_t volt__oneshot_set_bits(uint32_t word, uint32_t n) {
    return word & VOLT__ONESHOT_ENDED ? word : word | n;
}
static int volt__oneshot_end(volt_oneshot *o, uint32_t bits) {
    uint32_t was = volt__waitword_change(&o->waitword_, VOLT__ONESHOT_ENDED, VOLT__ONESHOT_ENDED,
                                         volt__oneshot_set_bits, bits);
    return was & VOLT__ONESHOT_ENDED ? -EPIPE : 0;
}
VOLT_API int volt_oneshot_send(volt_oneshot *o, int64_t value) {
    uint32_t word = volt__load_acq(&o->waitword_.word_); // [G2] with end
    if (value == VOLT__PENDING) return -EINVAL;
    if (word & VOLT__ONESHOT_ENDED) return -EPIPE;
    o->value_ = value;
    return volt__oneshot_end(o, VOLT__ONESHOT_ENDED | VOLT__ONESHOT_HAS_VALUE);
}
VOLT_API void volt_oneshot_close(volt_oneshot *o) {
    (void)volt__oneshot_end(o, VOLT__ONESHOT_ENDED);
}
// Also 1 once the value has been received.
VOLT_API int volt_oneshot_is_closed(const volt_oneshot *o) {
    uint32_t word = volt__load_acq(&o->waitword_.word_); // [G2] with end
    return (word & (VOLT__ONESHOT_ENDED | VOLT__ONESHOT_HAS_VALUE)) == VOLT__ONESHOT_ENDED;
}
VOLT_API volt_poll volt_oneshot_wait_closed(volt_cx *cx, volt_oneshot *o) {
    return volt__waitword_poll(cx, &o->waitword_, VOLT__ONESHOT_ENDED, VOLT__ONESHOT_ENDED);
}
VOLT_API int volt_oneshot_wait_closed_sync(volt_oneshot *o, volt_time at_most) {
    return volt__waitword_sync(&o->waitword_, VOLT__ONESHOT_ENDED, VOLT__ONESHOT_ENDED, at_most);
}
// Called when ENDED is set. Returns 0 with the value in *value, or -EPIPE if there is no value or
// another receive has taken it.
static int volt__oneshot_take(volt_oneshot *o, int64_t *value) {
    uint32_t keep = ~(uint32_t)VOLT__ONESHOT_HAS_VALUE;
    uint32_t word = volt__and_acq_rel(&o->waitword_.word_, keep); // [G2] with end
    VOLT_ASSERT(word & VOLT__ONESHOT_ENDED);
    if (!(word & VOLT__ONESHOT_HAS_VALUE)) return -EPIPE;
    *value = o->value_;
    return 0;
}
VOLT_API int volt_oneshot_try_recv(volt_oneshot *o, int64_t *value) {
    if (!volt__waitword_check(&o->waitword_, VOLT__ONESHOT_ENDED, VOLT__ONESHOT_ENDED))
        return -EAGAIN;
    return volt__oneshot_take(o, value);
}
VOLT_API volt_poll volt_oneshot_recv(volt_cx *cx, volt_oneshot *o) {
    int64_t value = 0;
    volt_poll p = volt__waitword_poll(cx, &o->waitword_, VOLT__ONESHOT_ENDED, VOLT__ONESHOT_ENDED);
    if (volt_is_pending(p) || volt_value(p) < 0) return p;
    int rc = volt__oneshot_take(o, &value);
    return volt_ready(rc < 0 ? rc : value);
}
VOLT_API int volt_oneshot_recv_sync(volt_oneshot *o, volt_time at_most, int64_t *value) {
    int rc = volt__waitword_sync(&o->waitword_, VOLT__ONESHOT_ENDED, VOLT__ONESHOT_ENDED, at_most);
    return rc < 0 ? rc : volt__oneshot_take(o, value);
}

// ---- queue
// A push puts its node on a stack, whose top is in word_. The receiver takes the whole stack by one
// CAS and reverses it into first_, a list that only the receiver uses. So messages come out in the
// order in which they were pushed. The low bits of word_ hold CLOSED, or WAITING while the queue is
// empty and the receiver waits.
//   - WAITING is set and cleared under the lock. While it is set, pushes and closes take the lock;
//     otherwise each is one CAS.
//   - A fired receiver takes the lock before it returns. By then the push that fired it has
//     released the lock, so the receiver may free the queue.
//
// Two operations on one queue are ordered by:
//                 push, close             pop                     abandon
//   push, close   CAS; if WAITING: lock   CAS; [O1]               lock
#define VOLT__QUEUE_WAITING ((uintptr_t)1)
#define VOLT__QUEUE_CLOSED ((uintptr_t)2)

static int volt__queue_has(const void *word, uintptr_t flag) {
    return ((uintptr_t)word & flag) != 0;
}
static volt_queue_node *volt__queue_top(void *word) {
    uintptr_t flags = VOLT__QUEUE_WAITING | VOLT__QUEUE_CLOSED;
    return (volt_queue_node *)((uintptr_t)word & ~flags);
}
// Returns the word with n pushed, or with CLOSED set if n is NULL; WAITING is clear in both. `word`
// is not closed. Sets n->next_.
static void *volt__queue_with(void *word, volt_queue_node *n) {
    volt_queue_node *top = volt__queue_top(word);
    if (n) n->next_ = top;
    return n ? (void *)n : (void *)((uintptr_t)top | VOLT__QUEUE_CLOSED);
}
// Pushes or closes under the lock and fires the receiver. Returns 1 if done, or 0 if the receiver
// does not wait any more: nothing is done, and the caller uses the CAS.
static int volt__queue_put_queued(volt_queue *q, volt_queue_node *n) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&q->lock_);
    void *was = volt__load_acq(&q->word_); // [O1] with take
    int is_waited_for = volt__queue_has(was, VOLT__QUEUE_WAITING);
    if (is_waited_for) {
        VOLT_ASSERT(q->waiters_ != NULL);
        volt__store_rel(&q->word_, volt__queue_with(was, n)); // [O1] with take
        volt__wake_list_fire_first(&wakes, &q->waiters_, VOLT__FIRED);
    }
    volt__unlock(&q->lock_);
    volt__wake_list_run_if_any(&wakes);
    return is_waited_for;
}
// Pushes n, or closes the queue if n is NULL. Returns 0, or -EPIPE if the queue is closed.
static int volt__queue_put(volt_queue *q, volt_queue_node *n) {
    void *was = volt__load_acq(&q->word_); // [O1] with put
    for (;;) {
        if (volt__queue_has(was, VOLT__QUEUE_CLOSED)) return -EPIPE;
        if (VOLT__UNLIKELY(volt__queue_has(was, VOLT__QUEUE_WAITING))) {
            if (volt__queue_put_queued(q, n)) return 0;
            was = volt__load_acq(&q->word_); // [O1] with put
            // [O1] with take. LAST TOUCH
        } else if (volt__cas_acq_rel(&q->word_, &was, volt__queue_with(was, n))) {
            return 0;
        }
    }
}
VOLT_API int volt_queue_push(volt_queue *q, volt_queue_node *n) { return volt__queue_put(q, n); }
VOLT_API void volt_queue_close(volt_queue *q) { (void)volt__queue_put(q, NULL); }
// Takes the whole stack. Returns the word as it was before, whose top is the newest node. If CLOSED
// was set, it stays set.
static void *volt__queue_take_all(volt_queue *q) {
    void *was = volt__load_acq(&q->word_); // [O1] with put
    while (volt__queue_top(was)) {
        void *left = (void *)((uintptr_t)was & VOLT__QUEUE_CLOSED);
        if (volt__cas_acq_rel(&q->word_, &was, left)) break; // [O1] with put
    }
    return was;
}
VOLT_API int volt_queue_try_pop(volt_queue *q, volt_queue_node **out) {
    if (!q->first_) {
        void *was = volt__queue_take_all(q);
        for (volt_queue_node *n = volt__queue_top(was), *next; n; n = next) {
            next = n->next_;
            n->next_ = q->first_;
            q->first_ = n;
        }
        // One word tells that the stack is empty and that the queue is closed. No push follows a
        // close, so nothing is left then. A second load could see a close after a missed push.
        if (!q->first_) return volt__queue_has(was, VOLT__QUEUE_CLOSED) ? 0 : -EAGAIN;
    }
    *out = q->first_;
    q->first_ = (*out)->next_;
    return 1;
}
static int64_t volt__queue_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                   volt__wake_list *wakes) {
    volt_queue *q = (volt_queue *)op->on;
    (void)was, (void)wakes;
    if (q->waiters_) volt__misuse_current("volt_queue_pop: another caller waits already");
    for (;;) { // the CAS fails if a push or close has come since the pop
        void *empty = NULL;
        int rc = volt_queue_try_pop(q, (volt_queue_node **)op->data);
        if (rc != -EAGAIN) return rc;
        // [O1] with put
        if (volt__cas_acq_rel(&q->word_, &empty, (void *)VOLT__QUEUE_WAITING)) break;
    }
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
static int64_t volt__queue_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                   volt__wake_list *wakes) {
    volt_queue *q = (volt_queue *)op->on;
    (void)node, (void)wakes;
    // LINKED: word_ is WAITING, and no push changes it before the unlock. FIRED: WAITING is clear,
    // and the message stays in the queue.
    if (was == VOLT__LINKED) volt__store_rel(&q->word_, (void *)NULL); // [O1] with put
    return -ECANCELED;
}
static void volt__queue_wait_op(volt__wait_op *op, volt_queue *q, volt_queue_node **out) {
    volt__wait_op_init(op, q, &q->lock_, &q->waiters_, volt__queue_attempt, volt__queue_abandon);
    op->data = out;
}
VOLT_API volt_poll volt_queue_pop(volt_cx *cx, volt_queue *q, volt_queue_node **out) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_CHAN);
    volt__wait_op op;
    volt__check_not_on_stack(cx, q);
    volt__check_not_on_stack(cx, out);
    if (!node) return volt_pending();
    if (volt__node_state(node) == VOLT__IDLE && !volt__scope_is_cancelled(cx)) {
        int rc = volt_queue_try_pop(q, out);
        if (rc != -EAGAIN) return volt__leaf_ready(node, rc);
    }
    volt__queue_wait_op(&op, q, out);
    return volt__wait_op_poll(cx, node, &op);
}
VOLT_API int volt_queue_pop_sync(volt_queue *q, volt_queue_node **out, volt_time at_most) {
    volt__wait_op op;
    volt__queue_wait_op(&op, q, out);
    return volt__wait_op_sync(&op, at_most);
}

//==================================================================================================
// >>broadcast  broadcast and watch
//==================================================================================================
// Two channels that show their messages to all receivers. A broadcast keeps the last cap_ messages:
// each subscriber (volt_sub) receives all messages but those that are overwritten before it has
// received them. A watch keeps the newest value only. A send never waits for receivers.
//   - The fields of a volt_bcast or volt_watch are under its lock_; elem_, cap_ and buf_ are set
//     once. One thread at a time uses a volt_sub or volt_watcher.
//   - Nothing is granted. A send, set or close fires all waiters as RETRY, and each checks again
//     under the lock. A cancelled wait has nothing to pass on.
// Functions that take a volt_cx run inside a poll, `_sync` functions on a thread that runs no
// worker; any thread may call the others.

// ---- broadcast
// A circular buffer of cap_ slots: message i, counted from 0, is in slot i % cap_. sent_ is the
// number of messages so far, and next_ of a subscriber is the i of the message that it receives
// next.
static void *volt__bcast_slot(const volt_bcast *b, uint64_t i) {
    return b->buf_ + (size_t)(i % b->cap_) * b->elem_;
}
VOLT_API int volt_bcast_send(volt_bcast *b, const void *v, size_t size) {
    volt__wake_list wakes;
    int rc = -EPIPE;
    if (VOLT_DEBUG && size != b->elem_)
        volt__misuse_current("`size` is not that of the broadcast's elements");
    if (size != b->elem_ || b->cap_ == 0) return -EINVAL;
    volt__wake_list_init(&wakes);
    volt__lock(&b->lock_);
    if (!b->is_closed_) {
        volt__copy(volt__bcast_slot(b, b->sent_++), v, size);
        volt__wake_list_fire_all(&wakes, &b->waiters_, VOLT__RETRY);
        rc = (int)b->n_subs_;
    }
    volt__unlock(&b->lock_);
    volt__wake_list_run_if_any(&wakes);
    return rc;
}
VOLT_API void volt_bcast_close(volt_bcast *b) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&b->lock_);
    b->is_closed_ = 1;
    volt__wake_list_fire_all(&wakes, &b->waiters_, VOLT__RETRY);
    volt__unlock(&b->lock_);
    volt__wake_list_run_if_any(&wakes);
}
VOLT_API void volt_sub_open(volt_sub *s, volt_bcast *b) {
    s->bcast_ = b;
    s->lost_ = 0;
    volt__lock(&b->lock_);
    s->next_ = b->sent_;
    b->n_subs_++;
    volt__unlock(&b->lock_);
}
VOLT_API void volt_sub_close(volt_sub *s) {
    volt_bcast *b = s->bcast_;
    if (!b) return;
    s->bcast_ = NULL;
    volt__lock(&b->lock_);
    VOLT_ASSERT(b->n_subs_ > 0);
    b->n_subs_--;
    volt__unlock(&b->lock_);
}
VOLT_API uint64_t volt_sub_lost(volt_sub *s) {
    uint64_t n = s->lost_;
    s->lost_ = 0;
    return n;
}
// Called under lock. Returns 1 with the next message in *v, -EAGAIN if there is none, or 0 if there
// is none and the broadcast is closed. Returns -EOVERFLOW if messages were overwritten before this
// subscriber received them: their number is added to lost_, and next_ moves to the oldest message
// that is left.
static int volt__sub_next(volt_sub *s, void *v) {
    volt_bcast *b = s->bcast_;
    VOLT_ASSERT(s->next_ <= b->sent_);
    if (b->sent_ - s->next_ > b->cap_) {
        uint64_t lost = b->sent_ - s->next_ - b->cap_;
        s->lost_ += lost;
        s->next_ += lost;
        return -EOVERFLOW;
    }
    if (s->next_ == b->sent_) return b->is_closed_ ? 0 : -EAGAIN;
    volt__copy(v, volt__bcast_slot(b, s->next_++), b->elem_);
    return 1;
}
static int64_t volt__sub_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                 volt__wake_list *wakes) {
    int rc = volt__sub_next((volt_sub *)op->on, op->data);
    (void)was, (void)wakes;
    if (rc != -EAGAIN) return rc;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
static void volt__sub_wait_op(volt__wait_op *op, volt_sub *s, void *v) {
    volt_bcast *b = s->bcast_;
    if (!b) volt__misuse_current("volt_sub_recv: the subscription is not open");
    volt__wait_op_init(op, s, &b->lock_, &b->waiters_, volt__sub_attempt, volt__abandon_nothing);
    op->data = v;
    op->n = 1; // volt__chan_poll and volt__chan_sync refuse 0
}
VOLT_API volt_poll volt_sub_recv(volt_cx *cx, volt_sub *s, void *v, size_t size) {
    volt__wait_op op;
    volt__check_not_on_stack(cx, v);
    volt__sub_wait_op(&op, s, v);
    return volt__chan_poll(cx, &op, size, s->bcast_->elem_);
}
VOLT_API int volt_sub_recv_sync(volt_sub *s, void *v, size_t size, volt_time at_most) {
    volt__wait_op op;
    volt__sub_wait_op(&op, s, v);
    return volt__chan_sync(&op, size, s->bcast_->elem_, at_most);
}
VOLT_API int volt_sub_try_recv(volt_sub *s, void *v, size_t size) {
    if (!s->bcast_) volt__misuse_current("volt_sub_try_recv: the subscription is not open");
    if (size != s->bcast_->elem_) return -EINVAL;
    volt__lock(&s->bcast_->lock_);
    int rc = volt__sub_next(s, v);
    volt__unlock(&s->bcast_->lock_);
    return rc;
}

// ---- watch
// version_ counts the sets, modulo 2^32. The value is new to a watcher if its seen_version_ differs
// from version_.

// Stores *v unless the watch is closed. If version_or_null is not NULL, *v is stored only while the
// version is *version_or_null. Returns 0, -EPIPE if closed, -EAGAIN for another version, or -EINVAL
// for another size.
static int volt__watch_store(volt_watch *w, const void *v, size_t size,
                             const uint32_t *version_or_null) {
    volt__wake_list wakes;
    int rc = -EPIPE;
    if (VOLT_DEBUG && size != w->elem_)
        volt__misuse_current("`size` is not that of the watch's value");
    if (size != w->elem_) return -EINVAL;
    volt__wake_list_init(&wakes);
    volt__lock(&w->lock_);
    if (!w->is_closed_ && version_or_null && *version_or_null != w->version_) {
        rc = -EAGAIN;
    } else if (!w->is_closed_) {
        volt__copy(w->buf_, v, size);
        w->version_++;
        volt__wake_list_fire_all(&wakes, &w->waiters_, VOLT__RETRY);
        rc = 0;
    }
    volt__unlock(&w->lock_);
    volt__wake_list_run_if_any(&wakes);
    return rc;
}
VOLT_API int volt_watch_set(volt_watch *w, const void *v, size_t size) {
    return volt__watch_store(w, v, size, NULL);
}
VOLT_API int volt_watch_set_if(volt_watch *w, const void *v, size_t size, uint32_t version) {
    return volt__watch_store(w, v, size, &version);
}
VOLT_API int volt_watch_get(volt_watch *w, void *v, size_t size, uint32_t *version_or_null) {
    if (size != w->elem_) return -EINVAL;
    volt__lock(&w->lock_);
    volt__copy(v, w->buf_, size);
    if (version_or_null) *version_or_null = w->version_;
    volt__unlock(&w->lock_);
    return 0;
}
VOLT_API void volt_watch_close(volt_watch *w) {
    volt__wake_list wakes;
    volt__wake_list_init(&wakes);
    volt__lock(&w->lock_);
    w->is_closed_ = 1;
    volt__wake_list_fire_all(&wakes, &w->waiters_, VOLT__RETRY);
    volt__unlock(&w->lock_);
    volt__wake_list_run_if_any(&wakes);
}
VOLT_API void volt_watcher_open(volt_watcher *r, volt_watch *w) {
    r->watch_ = w;
    volt__lock(&w->lock_);
    r->seen_version_ = w->version_;
    volt__unlock(&w->lock_);
}
// Which value a watcher waits for.
typedef struct volt__watch_filter {
    void *v;                                    // the value is copied to *v
    int (*is_wanted)(const void *v, void *arg); // called under lock; NULL: any new value
    void *arg;
} volt__watch_filter;
// Called under lock. Marks the current value as seen. Returns 1 with the value in *filter->v if it
// is wanted. If not, returns 0 if the watch is closed, or -EAGAIN.
static int volt__watcher_check(volt_watcher *r, const volt__watch_filter *filter) {
    volt_watch *w = r->watch_;
    int is_it = filter->is_wanted ? filter->is_wanted(w->buf_, filter->arg)
                                  : r->seen_version_ != w->version_;
    r->seen_version_ = w->version_;
    if (!is_it) return w->is_closed_ ? 0 : -EAGAIN;
    volt__copy(filter->v, w->buf_, w->elem_);
    return 1;
}
static int64_t volt__watcher_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                     volt__wake_list *wakes) {
    const volt__watch_filter *filter = (const volt__watch_filter *)op->data;
    int rc = volt__watcher_check((volt_watcher *)op->on, filter);
    (void)was, (void)wakes;
    if (rc != -EAGAIN) return rc;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
static void volt__watcher_wait_op(volt__wait_op *op, volt_watcher *r, volt__watch_filter *filter) {
    if (!r->watch_) volt__misuse_current("the watcher is not open");
    volt__wait_op_init(op, r, &r->watch_->lock_, &r->watch_->waiters_, volt__watcher_attempt,
                       volt__abandon_nothing);
    op->data = filter;
    op->n = 1; // as in volt__sub_wait_op
}
VOLT_API volt_poll volt_watcher_next(volt_cx *cx, volt_watcher *r, void *v, size_t size) {
    return volt_watcher_until(cx, r, NULL, NULL, v, size);
}
VOLT_API volt_poll volt_watcher_until(volt_cx *cx, volt_watcher *r,
                                      int (*is_wanted)(const void *v, void *arg), void *arg,
                                      void *v, size_t size) {
    volt__watch_filter filter = { v, is_wanted, arg };
    volt__wait_op op;
    volt__check_not_on_stack(cx, v);
    volt__check_not_on_stack(cx, arg);
    volt__watcher_wait_op(&op, r, &filter);
    return volt__chan_poll(cx, &op, size, r->watch_->elem_);
}
VOLT_API int volt_watcher_next_sync(volt_watcher *r, void *v, size_t size, volt_time at_most) {
    return volt_watcher_until_sync(r, NULL, NULL, v, size, at_most);
}
VOLT_API int volt_watcher_until_sync(volt_watcher *r, int (*is_wanted)(const void *v, void *arg),
                                     void *arg, void *v, size_t size, volt_time at_most) {
    volt__watch_filter filter = { v, is_wanted, arg };
    volt__wait_op op;
    volt__watcher_wait_op(&op, r, &filter);
    return volt__chan_sync(&op, size, r->watch_->elem_, at_most);
}
VOLT_API int volt_watcher_try_next(volt_watcher *r, void *v, size_t size) {
    const volt__watch_filter filter = { v, NULL, NULL };
    if (!r->watch_) volt__misuse_current("volt_watcher_try_next: the watcher is not open");
    if (size != r->watch_->elem_) return -EINVAL;
    volt__lock(&r->watch_->lock_);
    int rc = volt__watcher_check(r, &filter);
    volt__unlock(&r->watch_->lock_);
    return rc;
}

//==================================================================================================
// >>blocking  blocking calls, on a pool thread or in place
//==================================================================================================
// A task calls a function `fn` that may block, in one of three ways:
//   volt_blocking         On a pool thread. Once fn has begun, the wait lasts until fn returns.
//   volt_blocking_detach  On a pool thread. A cancelled wait ends at once; if fn has begun, it runs
//                         to its end.
//   volt_block_in_place   On the current thread, inside the poll. Another thread takes the worker,
//                         if possible: see >>handoff.
// Under VOLT_SINGLE_THREAD all three call fn inside the poll.
//   - A job that the pool has accepted ends once: a pool thread runs it, its task takes it back
//     before a thread has begun it, or it fails because no thread can be started.
//   - From the submit until the job ends, the state of the job, its result and the node that waits
//     for it change only under the lock of the pool.
// The volt_ functions and the `start`, `cancel_wait` and `end_wait` functions are called in a poll,
// the `run` functions by a pool thread. A `complete` function is called by the pool thread that has
// run the job, or, for a queued job that fails, in a poll that has submitted a later job and could
// not start a thread for it. None of these functions is called under a lock.
#ifdef VOLT_SINGLE_THREAD
VOLT_API volt_poll volt_blocking(volt_cx *cx, volt_job *job, int (*fn)(void *), void *arg) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_JOB);
    (void)job;
    if (!node) return volt_pending();
    return volt__leaf_ready(node, volt__scope_is_cancelled(cx) ? -ECANCELED : fn(arg));
}
VOLT_API volt_poll volt_blocking_detach(volt_cx *cx, volt_detached_job *job, int (*fn)(void *),
                                        void *arg, void (*drop)(void *)) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_JOB);
    (void)job;
    if (!node) return volt_pending();
    int is_cancelled = volt__scope_is_cancelled(cx);
    if (is_cancelled && drop) drop(arg);
    return volt__leaf_ready(node, is_cancelled ? -ECANCELED : fn(arg));
}
VOLT_API int volt_block_in_place(volt_cx *cx, int (*fn)(void *), void *arg) {
    volt_cx saved = *cx; // as in the version with threads; not needed here: fn cannot poll
    int rc = fn(arg);
    *cx = saved;
    return rc;
}
#else
// Called when the job has run, or has failed; `rc` is the result of fn, or the error. Its task is
// waiting or about to wait, so its state, which may contain the job, still exists.
static void volt__job_complete(void *arg, int rc) {
    volt_job *job = (volt_job *)arg;
    volt__pool *p = &job->rt_->pool;
    volt__chain c;
    volt__chain_init(&c);
    volt__lock(&p->lock);
    job->result_ = rc;
    job->state_ = VOLT__JOB_NONE;
    volt__list_fire_all(&job->waiters_, VOLT__FIRED, &c);
    volt__unlock(&p->lock); // LAST TOUCH of the job
    volt__schedule_chain(&c);
}
static void volt__job_run(void *arg) {
    volt_job *job = (volt_job *)arg;
    volt__job_complete(job, job->fn_(job->user_));
}
// Submits the job. Returns 0, or -errno if fn will not run.
static int volt__job_start(volt_cx *cx, volt_job *job, int (*fn)(void *), void *arg) {
    VOLT__REQUIRE_CX(cx, job->state_ == VOLT__JOB_NONE, "volt_job is in use by another call");
    memset(job, 0, sizeof *job); // lane_ 0 is VOLT__LANE_WORK
    job->run_ = volt__job_run;
    job->fail_ = volt__job_complete;
    job->arg_ = job;
    job->fn_ = fn;
    job->user_ = arg;
    job->rt_ = cx->rt_;
    int rc = volt__pool_submit(&cx->rt_->pool, job);
    if (rc < 0) job->state_ = VOLT__JOB_NONE;
    return rc;
}
static int64_t volt__job_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                 volt__wake_list *wakes) {
    const volt_job *job = (const volt_job *)op->on;
    (void)was, (void)wakes;
    if (job->state_ == VOLT__JOB_NONE) return job->result_;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
// Takes the job back. If it has begun, the wait goes on; if it has ended, it gives its result.
static int64_t volt__job_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                 volt__wake_list *wakes) {
    volt_job *job = (volt_job *)op->on;
    if (job->state_ != VOLT__JOB_NONE && volt__pool_cancel(&job->rt_->pool, job))
        return -ECANCELED;
    return volt__job_attempt(op, node, was, wakes);
}
VOLT_API volt_poll volt_blocking(volt_cx *cx, volt_job *job, int (*fn)(void *), void *arg) {
    volt__wait_op op;
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_JOB);
    volt__check_not_on_stack(cx, job);
    volt__check_not_on_stack(cx, arg);
    if (!node) return volt_pending();
    if (volt__node_state(node) == VOLT__IDLE) { // not started yet
        int rc = volt__scope_is_cancelled(cx) ? -ECANCELED : volt__job_start(cx, job, fn, arg);
        if (rc < 0) return volt__leaf_ready(node, rc);
    }
    volt__wait_op_init(&op, job, &cx->rt_->pool.lock, &job->waiters_, volt__job_attempt,
                       volt__job_abandon);
    return volt__wait_op_poll(cx, node, &op);
}

// A call of volt_blocking_detach. It is a memory block of its own, because fn may outlast the wait
// and the task. The task owns the block. If it abandons the wait after the job has begun, the
// thread that completes the job becomes the owner. The owner frees the block.
typedef struct volt__detached_job {
    volt_job job;
    volt_rt *rt;
    int (*fn)(void *);
    void *arg;
    void (*drop)(void *);
    volt__node *waiters; // under the pool's lock: the task's node, while it waits
    // under the pool's lock. is_abandoned: the wait was cancelled after the job had begun. is_done:
    // the job has ended, or failed, with the result `rc`
    int is_abandoned, is_done, rc;
} volt__detached_job;
// `is_dropped`: `drop` is called, because the caller of volt_blocking_detach has got -ECANCELED.
static void volt__detached_job_free(volt__detached_job *detached, int is_dropped) {
    volt_allocator *a = &detached->rt->cfg.alloc;
    if (is_dropped && detached->drop) detached->drop(detached->arg);
    a->free(a->user, detached, sizeof *detached);
}
static void volt__detached_job_complete(void *arg, int rc) {
    volt__detached_job *detached = (volt__detached_job *)arg;
    volt__pool *p = &detached->rt->pool;
    volt__chain c;
    volt__chain_init(&c);
    volt__lock(&p->lock);
    int is_abandoned = detached->is_abandoned;
    detached->is_done = 1;
    detached->rc = rc;
    volt__list_fire_all(&detached->waiters, VOLT__FIRED, &c);
    volt__unlock(&p->lock); // LAST TOUCH, unless the wait was abandoned
    if (is_abandoned) volt__detached_job_free(detached, 1);
    volt__schedule_chain(&c);
}
static void volt__detached_job_run(void *arg) {
    volt__detached_job *detached = (volt__detached_job *)arg;
    volt__detached_job_complete(detached, detached->fn(detached->arg));
}
// Submits the call and stores its address in *out. Returns 0, or -errno. An error calls
// neither fn nor `drop`: `arg` stays with the caller.
static int volt__detached_job_start(volt_cx *cx, int (*fn)(void *), void *arg,
                                    void (*drop)(void *), volt__detached_job **out) {
    volt_allocator *a = &cx->rt_->cfg.alloc;
    volt__detached_job *detached =
        (volt__detached_job *)a->alloc(a->user, sizeof *detached, VOLT__CACHE_LINE);
    if (!detached) return -ENOMEM;
    memset(detached, 0, sizeof *detached);
    detached->fn = fn;
    detached->arg = arg;
    detached->drop = drop;
    detached->job.run_ = volt__detached_job_run;
    detached->job.fail_ = volt__detached_job_complete;
    detached->job.arg_ = detached;
    detached->rt = cx->rt_;
    *out = detached;
    int rc = volt__pool_submit(&cx->rt_->pool, &detached->job);
    if (rc == 0) return 0;
    volt__detached_job_free(detached, 0);
    *out = NULL;
    return rc;
}
// *op->data becomes 1 if the task still owns the block after the wait.
static int64_t volt__detached_job_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                          volt__wake_list *wakes) {
    const volt__detached_job *detached = (const volt__detached_job *)op->on;
    (void)was, (void)wakes;
    *(int *)op->data = 1;
    if (detached->is_done) return detached->rc;
    volt__wait_op_link(op, node, 0);
    return VOLT__PENDING;
}
// If the job has ended, gives its result. If not, it is taken back or, once it has begun, left to
// the thread that completes it.
static int64_t volt__detached_job_abandon(const volt__wait_op *op, volt__node *node, uint8_t was,
                                          volt__wake_list *wakes) {
    volt__detached_job *detached = (volt__detached_job *)op->on;
    (void)node, (void)was, (void)wakes;
    int is_ours = detached->is_done || volt__pool_cancel(&detached->rt->pool, &detached->job);
    detached->is_abandoned = !is_ours;
    *(int *)op->data = is_ours;
    return detached->is_done ? detached->rc : -ECANCELED;
}
// Waits for a job that was started, and frees it once its task has the result or has taken it back.
static volt_poll volt__detached_job_poll(volt_cx *cx, volt__node *node,
                                         volt__detached_job **call) {
    volt__wait_op op;
    int is_ours = 0;
    volt__detached_job *detached = *call;
    volt__wait_op_init(&op, detached, &cx->rt_->pool.lock, &detached->waiters,
                       volt__detached_job_attempt, volt__detached_job_abandon);
    op.data = &is_ours;
    volt_poll p = volt__wait_op_poll(cx, node, &op);
    if (volt_is_pending(p)) return p;
    *call = NULL;
    if (is_ours) volt__detached_job_free(detached, !detached->is_done);
    return p;
}
VOLT_API volt_poll volt_blocking_detach(volt_cx *cx, volt_detached_job *job, int (*fn)(void *),
                                        void *arg, void (*drop)(void *)) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_JOB);
    volt__check_not_on_stack(cx, job);
    volt__check_not_on_stack(cx, arg);
    if (!node) return volt_pending();
    if (volt__node_state(node) != VOLT__IDLE)
        return volt__detached_job_poll(cx, node, &job->impl_);
    if (volt__scope_is_cancelled(cx)) {
        if (drop) drop(arg);
        return volt__leaf_ready(node, -ECANCELED);
    }
    VOLT__REQUIRE_CX(cx, !job->impl_, "volt_detached_job is in use by another call");
    int rc = volt__detached_job_start(cx, fn, arg, drop, &job->impl_);
    return rc < 0 ? volt__leaf_ready(node, rc) : volt__detached_job_poll(cx, node, &job->impl_);
}

// Calls fn when no other thread can take the worker. n_blocked counts the workers that are blocked
// here. If at least one other worker is not, it can run the local tasks: they move to the injector,
// and during fn the thread counts as a plain one, so that fn may wait for tasks.
static int volt__block_without_handoff(volt__worker *w, int (*fn)(void *), void *arg) {
    uint32_t *n = &w->rt->n_blocked;
    // A guest, and the last worker to block, keep their tasks, which run after fn. Their thread
    // still counts as the worker's, so a wait for a task inside fn gives -EDEADLK.
    int has_others = volt__add_acq_rel(n, 1) + 1 < volt__started(w->rt) && !w->is_guest; // [H3]
    if (has_others) {
        volt__evict_local_tasks(w);
        VOLT_TLS_SET((volt__worker *)NULL);
    }
    volt__store_rlx(&w->is_blocked, 1); // rlx: hint for placement
    int rc = fn(arg);
    volt__store_rlx(&w->is_blocked, 0); // rlx: hint for placement
    volt__sub_acq_rel(n, 1);            // [H3]
    if (has_others) VOLT_TLS_SET(w);
    return rc;
}
VOLT_API int volt_block_in_place(volt_cx *cx, int (*fn)(void *), void *arg) {
    volt__worker *w = cx->worker_;
    volt_job job;        // of the pool thread that becomes the carrier, not of fn
    volt_cx saved = *cx; // the carrier in between polls other tasks with the same *cx
    uint8_t is_own_thread = w->is_own_thread; // the carrier in between changes it
    // The carrier in between may acknowledge a shutdown, whose sweep wakes this task in the middle
    // of its poll. So the task must not be private.
    cx->task_->flags |= VOLT__IS_SHARED;
    if (!volt__handoff_begin(w, &job)) return volt__block_without_handoff(w, fn, arg);
    int rc = fn(arg);
    volt__handoff_end(w, &job);
    w->is_own_thread = is_own_thread;
    *cx = saved;
    return rc;
}
#endif

//==================================================================================================
// >>files  file operations, on a pool thread
//==================================================================================================
// Epoll cannot tell when a file on a disk is ready, and a system call on it may block. So each
// operation is one call of volt_blocking, in which a pool thread runs volt__file_run.
//   - A volt_file_op holds the arguments of the operation and its job. The first poll stores the
//     arguments; they do not change until the await ends, because the pool thread reads them.
//   - The await does not end while the job runs, not even if it is cancelled. So paths and buffers
//     are passed to the pool thread without a copy.
//   - If a system call fails, the operation ends with -errno of that call, even if a part of the
//     data was transferred. Only pread and pwrite are repeated after EINTR.
// The volt_file_ functions are called in a poll. volt__file_run and the functions that it calls run
// on a pool thread; under VOLT_SINGLE_THREAD they run inside the poll.
#ifndef VOLT_NO_FILES
enum {
    VOLT__FILE_OPEN,
    VOLT__FILE_PREAD,
    VOLT__FILE_PWRITE,
    VOLT__FILE_APPEND,
    VOLT__FILE_TRUNCATE,
    VOLT__FILE_SYNC,
    VOLT__FILE_STAT,
    VOLT__FILE_FSTAT,
    VOLT__FILE_CLOSE,
    VOLT__FILE_LOAD,
    VOLT__FILE_SAVE,
    VOLT__FILE_REPLACE,
    VOLT__FILE_RENAME,
    VOLT__FILE_UNLINK,
    VOLT__FILE_MKDIR,
    VOLT__FILE_RMDIR,
    VOLT__FILE_READDIR
};
enum { VOLT__FILE_MAX = 1 << 30 }; // most bytes per operation: the result is an int
// Returns the result of a system call, or -errno.
static int volt__file_result(int64_t rc) { return rc < 0 ? -errno : (int)rc; }
// Transfers `len` bytes at offset_; a read ends early at the end of the file. Returns the number of
// bytes transferred, or -errno.
static int volt__file_transfer(const volt_file_op *op, int fd, size_t len, int is_write) {
    char *buf = (char *)op->buf_;
    size_t done = 0;
    if (len > VOLT__FILE_MAX) return -EINVAL;
    // the first test keeps the sum from overflowing; the second: off_t may have 32 bits
    if (op->offset_ > INT64_MAX - VOLT__FILE_MAX) return -EOVERFLOW;
    int64_t end = op->offset_ + (int64_t)len;
    off_t narrow_end = (off_t)end;
    if (narrow_end != end) return -EOVERFLOW;
    while (done < len) {
        off_t at = (off_t)op->offset_ + (off_t)done;
        ssize_t n = op->kind_ == VOLT__FILE_APPEND
                        ? VOLT_SYS(write, fd, buf + done, len - done)
                    : is_write ? VOLT_SYS(pwrite, fd, buf + done, len - done, at)
                               : VOLT_SYS(pread, fd, buf + done, len - done, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        if (n == 0 && is_write) return -EIO; // else an endless loop; Linux never does this
        if (n == 0) break;
        done += (size_t)n;
    }
    return (int)done;
}
static int volt__file_open(const volt_file_op *op) {
    int flags = op->flags_ | O_CLOEXEC; // VOLT__FILE_LOAD: flags_ is 0, which is O_RDONLY
    if (!op->path_) return -EFAULT; // the C library may assume that the path is not NULL
    return volt__file_result(VOLT_SYS(openat, AT_FDCWD, op->path_, flags, op->mode_));
}
// Reads a whole file into a buffer of len_ bytes. If the buffer is full, a read of one more byte
// tells whether the file is larger. Returns the length of the file, -EFBIG if it is larger than the
// buffer, or another -errno.
static int volt__file_load(const volt_file_op *op) {
    char beyond;
    int fd = volt__file_open(op);
    if (fd < 0) return fd;
    int rc = volt__file_transfer(op, fd, op->len_, 0);
    if (rc >= 0 && (size_t)rc == op->len_) {
        ssize_t n;
        do n = VOLT_SYS(pread, fd, &beyond, 1, (off_t)op->len_);
        while (n < 0 && errno == EINTR);
        if (n != 0) rc = n < 0 ? -errno : -EFBIG;
    }
    VOLT_SYS(close, fd);
    return rc;
}
// Opens the file with flags_, writes len_ bytes and closes it. Returns len_ or -errno.
static int volt__file_save(const volt_file_op *op) {
    int fd = volt__file_open(op);
    if (fd < 0) return fd;
    int rc = volt__file_transfer(op, fd, op->len_, 1);
    // a network file system may report a write error only now
    if (VOLT_SYS(close, fd) < 0 && rc >= 0) rc = -errno;
    return rc;
}
static int volt__file_truncate(const volt_file_op *op) {
    off_t len = (off_t)op->offset_;
    if (len != op->offset_) return -EOVERFLOW;
    return volt__file_result(VOLT_SYS(ftruncate, op->fd_, len));
}
// Waits until the entry of `path` in its directory is on the disk.
static int volt__file_sync_dir(const char *path) {
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(dir, len > 0 ? path : ".", len > 0 ? len : 1);
    dir[len > 0 ? len : 1] = 0;
    int fd = VOLT_SYS(openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int rc = volt__file_result(VOLT_SYS(fsync, fd));
    VOLT_SYS(close, fd);
    return rc == -EINVAL ? 0 : rc; // the file system has no such wait
}
// Opens a new file beside op->path_, and stores its path. Returns a descriptor or -errno.
static int volt__file_open_beside(const volt_file_op *op, char *path, size_t cap) {
    size_t len = strlen(op->path_);
    if (len + 18 > cap) return -ENAMETOOLONG;
    for (int tries = 0; tries < 100; tries++) {
        uint64_t id = VOLT_RANDOM();
        memcpy(path, op->path_, len);
        path[len] = '.';
        for (size_t i = 0; i < 16; i++, id >>= 4) path[len + 1 + i] = "0123456789abcdef"[id & 15];
        path[len + 17] = 0;
        int fd = VOLT_SYS(openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                          op->mode_);
        if (fd >= 0 || errno != EEXIST) return volt__file_result(fd);
    }
    return -EEXIST;
}
static int volt__file_replace(const volt_file_op *op) {
    char beside[PATH_MAX];
    if (!op->path_) return -EFAULT;
    int fd = volt__file_open_beside(op, beside, sizeof beside);
    if (fd < 0) return fd;
    int rc = volt__file_transfer(op, fd, op->len_, 1);
    if (rc >= 0 && VOLT_SYS(fsync, fd) < 0) rc = -errno;
    if (VOLT_SYS(close, fd) < 0 && rc >= 0) rc = -errno;
    if (rc >= 0 && VOLT_SYS(rename, beside, op->path_) < 0) rc = -errno;
    if (rc < 0) {
        VOLT_SYS(unlink, beside);
        return rc;
    }
    int synced = volt__file_sync_dir(op->path_);
    return synced < 0 ? synced : rc;
}
// The operations on paths.
static int volt__file_run_path(const volt_file_op *op) {
    const char *path = op->path_;
    if (!path || (op->kind_ == VOLT__FILE_RENAME && !op->to_)) return -EFAULT;
    switch (op->kind_) {
    case VOLT__FILE_STAT: return volt__file_result(VOLT_SYS(stat, path, (struct stat *)op->buf_));
    case VOLT__FILE_RENAME: return volt__file_result(VOLT_SYS(rename, path, op->to_));
    case VOLT__FILE_UNLINK: return volt__file_result(VOLT_SYS(unlink, path));
    case VOLT__FILE_MKDIR: return volt__file_result(VOLT_SYS(mkdir, path, op->mode_));
    default: return volt__file_result(VOLT_SYS(rmdir, path));
    }
}
// Called by a pool thread, as the fn of volt_blocking.
static int volt__file_run(void *arg) {
    volt_file_op *op = (volt_file_op *)arg;
    switch (op->kind_) {
    case VOLT__FILE_OPEN: return volt__file_open(op);
    case VOLT__FILE_PREAD: return volt__file_transfer(op, op->fd_, op->len_, 0);
    case VOLT__FILE_PWRITE: return volt__file_transfer(op, op->fd_, op->len_, 1);
    case VOLT__FILE_SYNC:
        return volt__file_result(op->flags_ ? VOLT_SYS(fdatasync, op->fd_)
                                            : VOLT_SYS(fsync, op->fd_));
    case VOLT__FILE_APPEND: return volt__file_transfer(op, op->fd_, op->len_, 1);
    case VOLT__FILE_TRUNCATE: return volt__file_truncate(op);
    case VOLT__FILE_FSTAT:
        return volt__file_result(VOLT_SYS(fstat, op->fd_, (struct stat *)op->buf_));
    case VOLT__FILE_CLOSE:
        op->is_run_ = 1; // see volt_file_close
        return volt__file_result(VOLT_SYS(close, op->fd_));
    case VOLT__FILE_LOAD: return volt__file_load(op);
    case VOLT__FILE_SAVE: return volt__file_save(op);
    case VOLT__FILE_REPLACE: return volt__file_replace(op);
    case VOLT__FILE_READDIR:
        return volt__file_result(VOLT_SYS(syscall, SYS_getdents64, op->fd_, op->buf_, op->len_));
    default: return volt__file_run_path(op);
    }
}
// Each poll of an operation passes the arguments again, in *call. Only the first poll, at which the
// frame is FRESH, copies them to *op, because the pool thread may read *op from then on. A missing
// frame is reported by volt_blocking. A state_ of 0 is VOLT__JOB_NONE, a name that does not exist
// under VOLT_SINGLE_THREAD.
static volt_poll volt__file_submit(volt_cx *cx, volt_file_op *op, const volt_file_op *call) {
    volt__node *node = cx->frame_;
    volt__check_not_on_stack(cx, op);
    volt__check_not_on_stack(cx, call->buf_);
    volt__check_not_on_stack(cx, call->path_);
    if (node && node->kind_ == VOLT__FRESH) {
        VOLT__REQUIRE_CX(cx, op->job_.state_ == 0, "volt_file_op is in use by another call");
        unsigned waits = op->waits_;
        *op = *call;
        op->waits_ = waits;
    }
    return volt_blocking(cx, &op->job_, volt__file_run, op);
}
// A read in place, of cached data. Returns the number of bytes if that is all that was asked for,
// or all up to the end of the file, else 0. A result of 0 of the kernel is not taken for the
// end: some versions give it in the middle of a file.
static int64_t volt__file_read_cached(volt_file_op *op, int fd, void *buf, size_t len,
                                      int64_t offset) {
#ifdef RWF_NOWAIT
    struct iovec part = { buf, len };
    struct stat st;
    if (op->waits_ || len == 0 || len > VOLT__FILE_MAX || offset < 0 || (off_t)offset != offset)
        return 0;
    ssize_t n = VOLT_SYS(preadv2, fd, &part, 1, (off_t)offset, RWF_NOWAIT);
    if (n < 0 && (errno == EOPNOTSUPP || volt__sys_is_unsupported(errno))) op->waits_ = 1;
    if (n <= 0) return 0;
    if ((size_t)n == len) return n;
    return VOLT_SYS(fstat, fd, &st) == 0 && offset + n >= st.st_size ? n : 0;
#else
    (void)op, (void)fd, (void)buf, (void)len, (void)offset;
    return 0;
#endif
}
// Fills *c; the fields without a parameter become 0.
static void volt__file_args(volt_file_op *c, int kind, int fd, const char *path, const void *buf,
                            size_t len) {
    memset(c, 0, sizeof *c);
    c->kind_ = kind;
    c->fd_ = fd;
    c->path_ = path;
    c->buf_ = (void *)(uintptr_t)buf; // writes only read the buffer
    c->len_ = len;
}
VOLT_API volt_poll volt_file_open(volt_cx *cx, volt_file_op *op, const char *path, int flags,
                                  unsigned mode) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_OPEN, -1, path, NULL, 0);
    c.flags_ = flags;
    c.mode_ = mode;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_pread(volt_cx *cx, volt_file_op *op, int fd, void *buf, size_t len,
                                   int64_t offset) {
    volt_file_op c;
    if (cx->frame_ && cx->frame_->kind_ == VOLT__FRESH && !volt__scope_is_cancelled(cx)) {
        int64_t n = volt__file_read_cached(op, fd, buf, len, offset);
        if (n > 0) return volt__leaf_ready(volt__leaf(cx, VOLT__LEAF_JOB), n);
    }
    volt__file_args(&c, VOLT__FILE_PREAD, fd, NULL, buf, len);
    c.offset_ = offset;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_pwrite(volt_cx *cx, volt_file_op *op, int fd, const void *buf,
                                    size_t len, int64_t offset) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_PWRITE, fd, NULL, buf, len);
    c.offset_ = offset;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_sync(volt_cx *cx, volt_file_op *op, int fd, int is_data_only) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_SYNC, fd, NULL, NULL, 0);
    c.flags_ = is_data_only;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_stat(volt_cx *cx, volt_file_op *op, const char *path,
                                  struct stat *out) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_STAT, -1, path, out, 0);
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_append(volt_cx *cx, volt_file_op *op, int fd, const void *buf,
                                    size_t len) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_APPEND, fd, NULL, buf, len);
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_truncate(volt_cx *cx, volt_file_op *op, int fd, int64_t len) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_TRUNCATE, fd, NULL, NULL, 0);
    c.offset_ = len;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_fstat(volt_cx *cx, volt_file_op *op, int fd, struct stat *out) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_FSTAT, fd, NULL, out, 0);
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_close(volt_cx *cx, volt_file_op *op, int fd) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_CLOSE, fd, NULL, NULL, 0);
    volt_poll p = volt__file_submit(cx, op, &c);
    // the job has not run
    if (!volt_is_pending(p) && !op->is_run_)
        p = volt_ready(volt__file_result(VOLT_SYS(close, fd)));
    return p;
}
VOLT_API volt_poll volt_file_load(volt_cx *cx, volt_file_op *op, const char *path, void *buf,
                                  size_t cap) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_LOAD, -1, path, buf, cap);
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_save(volt_cx *cx, volt_file_op *op, const char *path, const void *buf,
                                  size_t len, unsigned mode) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_SAVE, -1, path, buf, len);
    c.flags_ = O_WRONLY | O_CREAT | O_TRUNC;
    c.mode_ = mode;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_replace(volt_cx *cx, volt_file_op *op, const char *path,
                                     const void *buf, size_t len, unsigned mode) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_REPLACE, -1, path, buf, len);
    c.mode_ = mode;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_rename(volt_cx *cx, volt_file_op *op, const char *from,
                                    const char *to) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_RENAME, -1, from, NULL, 0);
    volt__check_not_on_stack(cx, to);
    c.to_ = to;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_file_unlink(volt_cx *cx, volt_file_op *op, const char *path) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_UNLINK, -1, path, NULL, 0);
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_dir_make(volt_cx *cx, volt_file_op *op, const char *path, unsigned mode) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_MKDIR, -1, path, NULL, 0);
    c.mode_ = mode;
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_dir_remove(volt_cx *cx, volt_file_op *op, const char *path) {
    volt_file_op c;
    volt__file_args(&c, VOLT__FILE_RMDIR, -1, path, NULL, 0);
    return volt__file_submit(cx, op, &c);
}
VOLT_API volt_poll volt_dir_read(volt_cx *cx, volt_file_op *op, int fd, void *buf, size_t cap) {
    volt_file_op c;
    if (cap > VOLT__FILE_MAX) cap = VOLT__FILE_MAX;
    volt__file_args(&c, VOLT__FILE_READDIR, fd, NULL, buf, cap);
    return volt__file_submit(cx, op, &c);
}
// The head of an entry as getdents64(2) writes it; the name follows its type.
typedef struct volt__file_entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
} volt__file_entry;
VOLT_API int volt_dir_next(const void *buf, size_t len, size_t *at, volt_dir_entry *out) {
    const char *entries = (const char *)buf;
    while (*at < len && len - *at > offsetof(volt__file_entry, type) + 1) {
        volt__file_entry head;
        memcpy(&head, entries + *at, offsetof(volt__file_entry, type) + 1);
        const char *name = entries + *at + offsetof(volt__file_entry, type) + 1;
        *at += head.size;
        if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
        out->name = name;
        out->inode = head.inode;
        out->type = head.type;
        return 1;
    }
    return 0;
}
#endif // VOLT_NO_FILES

//==================================================================================================
// >>sockets  addresses, options, opening
//==================================================================================================
// Socket addresses, socket options, and the functions that open sockets. None of them waits.
//   - A volt_addr holds the len_ bytes of a sockaddr. Its fields are copied in and out by memcpy,
//     because C forbids access to these bytes through a struct of another type.
//   - Each socket is opened non-blocking and close-on-exec.
//   - A function that fails returns -errno and leaves no socket open.
// Any thread may call these functions. The exceptions are the three volt__fd_ functions at the end:
// they use the table of descriptors (>>fds) and are called in a poll.
#ifndef VOLT_NO_IO
static void volt__addr_set(volt_addr *a, const void *sa, size_t len) {
    memset(a, 0, sizeof *a);
    memcpy(a->sa_, sa, len);
    a->len_ = (uint32_t)len;
}
VOLT_API int volt_addr_from(volt_addr *a, const struct sockaddr *sa, size_t len) {
    if (len < sizeof(sa_family_t) || len > sizeof a->sa_) return -EINVAL;
    volt__addr_set(a, sa, len);
    return 0;
}
VOLT_API int volt_addr_family(const volt_addr *a) {
    sa_family_t family = AF_UNSPEC;
    if (a->len_ >= sizeof family)
        memcpy(&family, a->sa_ + offsetof(struct sockaddr, sa_family), sizeof family);
    return family;
}
static const struct sockaddr *volt__addr_sa(const volt_addr *a) {
    return (const struct sockaddr *)(const void *)a->sa_;
}
VOLT_API const struct sockaddr *volt_addr_sockaddr(const volt_addr *a, unsigned *len) {
    *len = a->len_;
    return volt__addr_sa(a);
}
// Finds the scope of an IPv6 address by `text`, which is the name or the number of an interface.
// Returns 0, -EINVAL, -ENODEV, or the error of the socket by which the kernel is asked.
static int volt__addr_scope(const char *text, uint32_t *scope) {
    *scope = 0;
    if (*text == 0) return -EINVAL;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || *scope > (UINT32_MAX - 9) / 10) {
            *scope = VOLT_SYS(if_nametoindex, text);
            return *scope ? 0 : -errno;
        }
        *scope = *scope * 10 + (uint32_t)(*c - '0');
    }
    return 0;
}
// `text` is a numeric address, IPv4 or IPv6, without brackets; an IPv6 one may have a scope behind
// %. Returns 0; -EINVAL if `text` is anything else or `port` is above 65535; or the result of
// volt__addr_scope. The kernel is asked only if the address is one.
static int volt__addr_ip(volt_addr *a, const char *text, unsigned port) {
    char host[64];
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memset(&v4, 0, sizeof v4);
    memset(&v6, 0, sizeof v6);
    if (port > 65535 || strlen(text) >= sizeof host) return -EINVAL;
    memcpy(host, text, strlen(text) + 1);
    char *scope = strchr(host, '%');
    if (scope) *scope++ = 0;
    if (!scope && inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons((uint16_t)port);
        volt__addr_set(a, &v4, sizeof v4);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1) return -EINVAL;
    int rc = scope ? volt__addr_scope(scope, &v6.sin6_scope_id) : 0;
    if (rc < 0) return rc;
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons((uint16_t)port);
    volt__addr_set(a, &v6, sizeof v6);
    return 0;
}
// `path` may be an abstract name, which begins with @. Returns 0, or -EINVAL if it is empty or too
// long. The length of an abstract address is exact, since the bytes behind it would be part of the
// name.
static int volt__addr_unix(volt_addr *a, const char *path) {
    struct sockaddr_un un;
    size_t len = strlen(path), is_abstract = path[0] == '@';
    memset(&un, 0, sizeof un);
    if (len <= is_abstract || len >= sizeof un.sun_path) return -EINVAL;
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path, path, len);
    if (is_abstract) un.sun_path[0] = 0;
    volt__addr_set(a, &un, is_abstract ? offsetof(struct sockaddr_un, sun_path) + len : sizeof un);
    return 0;
}
VOLT_API int volt_addr_make(volt_addr *a, const char *host_or_null, unsigned port) {
    return volt__addr_ip(a, host_or_null ? host_or_null : "::", port);
}
VOLT_API int volt_addr_parse(volt_addr *a, const char *text) {
    char host[64];
    unsigned port = 0;
    if (strncmp(text, "unix:", 5) == 0) return volt__addr_unix(a, text + 5);
    const char *colon = strrchr(text, ':');
    if (!colon || colon[1] == 0 || strlen(colon + 1) > 5) return -EINVAL;
    for (const char *c = colon + 1; *c; c++) {
        if (*c < '0' || *c > '9') return -EINVAL;
        port = port * 10 + (unsigned)(*c - '0');
    }
    size_t len = (size_t)(colon - text);
    int is_v6 = len >= 2 && text[0] == '[' && colon[-1] == ']';
    if (is_v6) {
        text++;
        len -= 2;
    }
    if (len >= sizeof host) return -EINVAL;
    memcpy(host, text, len);
    host[len] = 0;
    if (strcmp(host, "*") == 0 && !is_v6) return volt__addr_ip(a, "::", port);
    if ((strchr(host, ':') != NULL) != is_v6) return -EINVAL; // "::1:80" is ambiguous
    return volt__addr_ip(a, host, port);
}
// Writes the part of `text` that fits into buf[at..cap). Returns the position after the whole text,
// which may be above `cap`.
static size_t volt__append_text(char *buf, size_t cap, size_t at, const char *text) {
    for (; *text; text++, at++)
        if (at < cap) buf[at] = *text;
    return at;
}
VOLT_API int volt_addr_port(const volt_addr *a) {
    struct sockaddr_in6 v6; // sin_port of an IPv4 address has the offset of sin6_port
    int family = volt_addr_family(a);
    if (!volt__is_ip(family)) return 0;
    memset(&v6, 0, sizeof v6);
    memcpy(&v6, a->sa_, a->len_ < sizeof v6 ? a->len_ : sizeof v6);
    return ntohs(v6.sin6_port);
}
VOLT_API int volt_addr_set_port(volt_addr *a, unsigned port) {
    uint16_t p = htons((uint16_t)port);
    if (port > 65535) return -EINVAL;
    if (!volt__is_ip(volt_addr_family(a))) return -EAFNOSUPPORT;
    memcpy(a->sa_ + offsetof(struct sockaddr_in6, sin6_port), &p, sizeof p); // as in volt_addr_port
    return 0;
}
static uint32_t volt__addr_scope_of(const volt_addr *a) {
    uint32_t scope = 0;
    if (volt_addr_family(a) == AF_INET6)
        memcpy(&scope, a->sa_ + offsetof(struct sockaddr_in6, sin6_scope_id), sizeof scope);
    return scope;
}
VOLT_API void volt_addr_unmap(volt_addr *a) {
    struct sockaddr_in v4;
    struct in6_addr v6;
    if (volt_addr_family(a) != AF_INET6) return;
    memcpy(&v6, a->sa_ + offsetof(struct sockaddr_in6, sin6_addr), sizeof v6);
    if (!IN6_IS_ADDR_V4MAPPED(&v6)) return;
    memset(&v4, 0, sizeof v4);
    v4.sin_family = AF_INET;
    v4.sin_port = htons((uint16_t)volt_addr_port(a));
    memcpy(&v4.sin_addr, v6.s6_addr + 12, sizeof v4.sin_addr);
    volt__addr_set(a, &v4, sizeof v4);
}
// Copies the IP address without its port to ip[]. Returns its number of bytes; 0: no IP address.
static size_t volt__addr_bytes(const volt_addr *a, unsigned char ip[16]) {
    volt_addr b = *a;
    volt_addr_unmap(&b);
    int family = volt_addr_family(&b);
    if (!volt__is_ip(family)) return 0;
    size_t n = family == AF_INET ? 4 : 16;
    memcpy(ip, b.sa_ + (family == AF_INET ? offsetof(struct sockaddr_in, sin_addr)
                                          : offsetof(struct sockaddr_in6, sin6_addr)), n);
    return n;
}
VOLT_API int volt_addr_is_loopback(const volt_addr *a) {
    unsigned char ip[16];
    size_t n = volt__addr_bytes(a, ip);
    return n == 4 ? ip[0] == 127 : n == 16 && memcmp(ip, &in6addr_loopback, 16) == 0;
}
VOLT_API int volt_addr_is_any(const volt_addr *a) {
    unsigned char ip[16];
    size_t n = volt__addr_bytes(a, ip);
    return n > 0 && memcmp(ip, &in6addr_any, n) == 0;
}
VOLT_API int volt_addr_is_multicast(const volt_addr *a) {
    unsigned char ip[16];
    size_t n = volt__addr_bytes(a, ip);
    return n == 4 ? ip[0] >> 4 == 14 : n == 16 && ip[0] == 0xff;
}
// Writes what identifies the address to key[], which has room for sa_, and returns the number of
// bytes: for IP without padding and flow label, for a path without what follows its 0.
static size_t volt__addr_key(const volt_addr *a, unsigned char *key) {
    volt_addr b = *a;
    volt_addr_unmap(&b);
    int family = volt_addr_family(&b);
    size_t n = offsetof(struct sockaddr_in6, sin6_port) + 2;
    size_t path = offsetof(struct sockaddr_un, sun_path);
    memcpy(key, b.sa_, sizeof b.sa_);
    if (family == AF_INET) return offsetof(struct sockaddr_in, sin_addr) + 4;
    if (family == AF_INET6) {
        uint32_t scope = volt__addr_scope_of(&b);
        memcpy(key + n, b.sa_ + offsetof(struct sockaddr_in6, sin6_addr), 16);
        memcpy(key + n + 16, &scope, 4);
        return n + 20;
    }
    if (family != AF_UNIX || b.len_ <= path || !b.sa_[path]) return b.len_;
    return path + strnlen((const char *)b.sa_ + path, b.len_ - path);
}
VOLT_API int volt_addr_equal(const volt_addr *a, const volt_addr *b) {
    unsigned char key_a[sizeof a->sa_], key_b[sizeof b->sa_];
    size_t n = volt__addr_key(a, key_a);
    return n == volt__addr_key(b, key_b) && memcmp(key_a, key_b, n) == 0;
}
VOLT_API uint32_t volt_addr_hash(const volt_addr *a) {
    unsigned char key[sizeof a->sa_];
    size_t n = volt__addr_key(a, key);
    uint32_t h = 2166136261u; // FNV-1a
    for (size_t i = 0; i < n; i++) h = (h ^ key[i]) * 16777619u;
    return h;
}
static size_t volt__append_number(char *buf, size_t cap, size_t at, uint32_t n) {
    char digits[12];
    size_t d = sizeof digits - 1;
    digits[d] = 0; // written from the end
    do digits[--d] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    return volt__append_text(buf, cap, at, digits + d);
}
static size_t volt__append_ip(char *buf, size_t cap, const volt_addr *a) {
    char ip[64] = "", name[IF_NAMESIZE];
    int is_v6 = volt_addr_family(a) == AF_INET6;
    uint32_t scope = 0;
    size_t at = 0, where = is_v6 ? offsetof(struct sockaddr_in6, sin6_addr)
                                 : offsetof(struct sockaddr_in, sin_addr);
    inet_ntop(volt_addr_family(a), a->sa_ + where, ip, sizeof ip);
    if (is_v6) {
        at = volt__append_text(buf, cap, at, "[");
        memcpy(&scope, a->sa_ + offsetof(struct sockaddr_in6, sin6_scope_id), sizeof scope);
    }
    at = volt__append_text(buf, cap, at, ip);
    if (scope) {
        at = volt__append_text(buf, cap, at, "%");
        at = VOLT_SYS(if_indextoname, scope, name) ? volt__append_text(buf, cap, at, name)
                                                   : volt__append_number(buf, cap, at, scope);
    }
    at = volt__append_text(buf, cap, at, is_v6 ? "]:" : ":");
    return volt__append_number(buf, cap, at, (uint32_t)volt_addr_port(a));
}
static size_t volt__append_unix(char *buf, size_t cap, const volt_addr *a) {
    char path[sizeof a->sa_ + 1] = "";
    size_t from = offsetof(struct sockaddr_un, sun_path), n = a->len_ > from ? a->len_ - from : 0;
    memcpy(path, a->sa_ + from, n); // a path from the kernel may lack the 0
    if (n > 0 && !path[0]) {
        for (size_t i = 0; i < n; i++)
            if (!path[i]) path[i] = '@';
    }
    return volt__append_text(buf, cap, volt__append_text(buf, cap, 0, "unix:"), path);
}
VOLT_API int volt_addr_format(const volt_addr *a, char *buf, size_t len) {
    int family = volt_addr_family(a);
    if (!volt__is_ip(family) && family != AF_UNIX) return -EAFNOSUPPORT;
    size_t at = family == AF_UNIX ? volt__append_unix(buf, len, a) : volt__append_ip(buf, len, a);
    if (at >= len) return -ENOSPC;
    buf[at] = 0;
    return (int)at;
}
static int volt__addr_of(int fd, volt_addr *out, int is_peer) {
    socklen_t len = sizeof out->sa_;
    memset(out, 0, sizeof *out);
    struct sockaddr *sa = (struct sockaddr *)(void *)out->sa_;
    int rc = is_peer ? VOLT_SYS(getpeername, fd, sa, &len) : VOLT_SYS(getsockname, fd, sa, &len);
    out->len_ = len < sizeof out->sa_ ? len : (uint32_t)sizeof out->sa_;
    return rc < 0 ? -errno : 0;
}
VOLT_API int volt_local_addr(int fd, volt_addr *out) { return volt__addr_of(fd, out, 0); }
VOLT_API int volt_peer_addr(int fd, volt_addr *out) { return volt__addr_of(fd, out, 1); }

// ---- socket options

static int volt__set_int_option(int fd, int level, int name, int value) {
    return VOLT_SYS(setsockopt, fd, level, name, &value, sizeof value) < 0 ? -errno : 0;
}
VOLT_API int volt_set_nodelay(int fd, int is_on) {
    return volt__set_int_option(fd, IPPROTO_TCP, TCP_NODELAY, is_on != 0);
}
VOLT_API int volt_set_keepalive(int fd, int idle_s, int interval_s, int count) {
    int rc = volt__set_int_option(fd, SOL_SOCKET, SO_KEEPALIVE, idle_s > 0);
    if (rc < 0 || idle_s <= 0) return rc;
    rc = volt__set_int_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    if (rc == 0) rc = volt__set_int_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
    return rc < 0 ? rc : volt__set_int_option(fd, IPPROTO_TCP, TCP_KEEPCNT, count);
}
VOLT_API int volt_set_buffers(int fd, int send_bytes, int receive_bytes) {
    int rc = send_bytes ? volt__set_int_option(fd, SOL_SOCKET, SO_SNDBUF, send_bytes) : 0;
    return rc == 0 && receive_bytes ? volt__set_int_option(fd, SOL_SOCKET, SO_RCVBUF, receive_bytes)
                                    : rc;
}
VOLT_API int volt_set_linger(int fd, int seconds) {
    struct linger l;
    l.l_onoff = seconds >= 0;
    l.l_linger = seconds > 0 ? seconds : 0;
    return VOLT_SYS(setsockopt, fd, SOL_SOCKET, SO_LINGER, &l, sizeof l) < 0 ? -errno : 0;
}
VOLT_API int volt_sock_shutdown(int fd, int is_read, int is_write) {
    int how = is_read && is_write ? SHUT_RDWR : is_read ? SHUT_RD : SHUT_WR;
    if (!is_read && !is_write) return -EINVAL;
    // ENOTCONN: the connection has ended already, which is no error
    return VOLT_SYS(shutdown, fd, how) < 0 && errno != ENOTCONN ? -errno : 0;
}

// ---- opening sockets

VOLT_API int volt_sock_open(int family, int type, int protocol) {
    int fd = VOLT_SYS(socket, family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    return fd < 0 ? -errno : fd;
}
VOLT_API int volt_sock_bind(int fd, const volt_addr *a) {
    return VOLT_SYS(bind, fd, volt__addr_sa(a), a->len_) < 0 ? -errno : 0;
}
VOLT_API int volt_sock_error(int fd) {
    int error = 0;
    socklen_t len = sizeof error;
    return VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}
static int volt__socket(int family) { return volt_sock_open(family, SOCK_STREAM, 0); }

// ---- the path of a unix socket

// Returns the path, or NULL if the address has none: of another family, abstract, or unnamed.
static const char *volt__addr_path(const volt_addr *a) {
    size_t at = offsetof(struct sockaddr_un, sun_path);
    if (volt_addr_family(a) != AF_UNIX || a->len_ <= at || !a->sa_[at]) return NULL;
    return (const char *)a->sa_ + at; // sa_ is longer than the longest path
}
// Returns 1 if no server answers at the path, 0 if one does, or -errno.
static int volt__path_is_stale(const volt_addr *a, int type) {
    int fd = volt_sock_open(AF_UNIX, type, 0), rc = 0;
    if (fd < 0) return fd;
    if (VOLT_SYS(connect, fd, volt__addr_sa(a), a->len_) < 0)
        rc = errno == ECONNREFUSED ? 1 : errno == EAGAIN || errno == EPROTOTYPE ? 0 : -errno;
    VOLT_SYS(close, fd);
    return rc;
}
// Removes a path that a server has left behind. Returns 0, -EADDRINUSE or -errno.
static int volt__path_replace(const volt_addr *a, int type) {
    struct stat st;
    const char *path = volt__addr_path(a);
    if (VOLT_SYS(stat, path, &st) < 0) return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode)) return -EADDRINUSE;
    int rc = volt__path_is_stale(a, type);
    if (rc <= 0) return rc < 0 ? rc : -EADDRINUSE;
    return VOLT_SYS(unlink, path) < 0 && errno != ENOENT ? -errno : 0;
}
// Locks the directory of the path: of two servers that replace a path at once, one must not remove
// that of the other. Returns a descriptor, which holds the lock; -EADDRINUSE; or -errno.
static int volt__path_lock(const char *path) {
    char dir[sizeof(((volt_addr *)0)->sa_)];
    const char *slash = strrchr(path, '/');
    size_t len = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(dir, len > 0 ? path : ".", len > 0 ? len : 1);
    dir[len > 0 ? len : 1] = 0;
    int fd = VOLT_SYS(open, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    if (VOLT_SYS(flock, fd, LOCK_EX | LOCK_NB) == 0) return fd;
    int rc = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
    VOLT_SYS(close, fd);
    return rc;
}
static int volt__path_set(const char *path, const volt_listen_options *o) {
    if (o->mode && VOLT_SYS(chmod, path, o->mode) < 0) return -errno;
    return o->has_owner && VOLT_SYS(chown, path, o->uid, o->gid) < 0 ? -errno : 0;
}
// Binds a unix socket of the type, as the options say. If that fails, its path is removed again.
static int volt__path_bind(int fd, const volt_addr *a, int type, const volt_listen_options *o) {
    const char *path = volt__addr_path(a);
    if (!path) return volt_sock_bind(fd, a);
    int lock = o->is_replacing ? volt__path_lock(path) : -1, rc = 0;
    if (o->is_replacing && lock < 0) return lock;
    if (o->is_replacing) rc = volt__path_replace(a, type);
    if (rc == 0) rc = volt_sock_bind(fd, a);
    if (rc == 0) {
        rc = volt__path_set(path, o);
        if (rc < 0) VOLT_SYS(unlink, path);
    }
    if (lock >= 0) VOLT_SYS(close, lock);
    return rc;
}

// ---- listeners

static int volt__listen_ip(int fd, const volt_addr *a, const volt_listen_options *o) {
    int rc = volt__set_int_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (rc == 0 && o->is_reuseport) rc = volt__set_int_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (rc == 0 && volt_addr_family(a) == AF_INET6)
        rc = volt__set_int_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, o->is_v6only != 0);
    if (rc == 0 && !o->is_delayed) rc = volt_set_nodelay(fd, 1); // accepted sockets inherit it
    return rc < 0 ? rc : volt_sock_bind(fd, a);
}
VOLT_API int volt_listen_addr(const volt_addr *a, const volt_listen_options *options_or_null) {
    volt_listen_options o;
    memset(&o, 0, sizeof o);
    if (options_or_null) o = *options_or_null;
    int family = volt_addr_family(a), is_unix = family == AF_UNIX;
    int type = is_unix && o.type ? o.type : SOCK_STREAM;
    int fd = volt_sock_open(family, type, 0);
    if (fd < 0) return fd;
    int rc = volt__is_ip(family) ? volt__listen_ip(fd, a, &o)
             : is_unix           ? volt__path_bind(fd, a, type, &o)
                                 : volt_sock_bind(fd, a);
    if (rc == 0 && VOLT_SYS(listen, fd, o.backlog > 0 ? o.backlog : 1024) < 0) {
        rc = -errno;
        if (is_unix && volt__addr_path(a)) VOLT_SYS(unlink, volt__addr_path(a));
    }
    if (rc == 0) return fd;
    VOLT_SYS(close, fd);
    return rc;
}
VOLT_API int volt_listen(const char *host, unsigned port,
                         const volt_listen_options *options_or_null) {
    volt_addr a;
    int rc = volt__addr_ip(&a, host ? host : "::", port);
    if (rc < 0) return rc;
    rc = volt_listen_addr(&a, options_or_null);
    if (host || rc != -EAFNOSUPPORT || (options_or_null && options_or_null->is_v6only)) return rc;
    volt__addr_ip(&a, "0.0.0.0", port); // -EAFNOSUPPORT: the kernel has no IPv6
    return volt_listen_addr(&a, options_or_null);
}
// Called when a check indicates that the number was closed without volt_close and now belongs to
// another file. Retires the entry, so that its waiters are fired as CLOSED, and logs the mistake.
static void volt__fd_reset(volt_cx *cx, volt__fd *e, int fd) {
    volt__chain c;
    volt__chain_init(&c);
    volt__fd_retire(&cx->rt_->fds, e, fd, 0, &c);
    volt__schedule_chain(&c);
    volt__log(cx->rt_, VOLT_LOG_FD_REUSED, cx->task_->wait_site);
}
// Called when a file is always ready, so that a node was not linked. Nodes that wait for the file
// that the number had before are fired, because epoll will not report this one.
static void volt__fd_fire_if_always(volt__fd *e) {
    volt__chain c;
    if (VOLT__LIKELY(volt__load_rlx(&e->mode) != VOLT__MODE_ALWAYS)) return; // rlx: hint
    volt__chain_init(&c);
    volt__lock(&e->lock);
    if (e->mode == VOLT__MODE_ALWAYS) volt__fd_fire_waiters(e, VOLT__FIRED, &c);
    volt__unlock(&e->lock);
    volt__schedule_chain(&c);
}
// Stores the flags (VOLT__FD_PROBED ...) of a number that the kernel has just returned. If the
// entry still has a registration, a description or a back-off of an earlier use, the number was
// closed without volt_close, and the entry is reset first.
static void volt__fd_adopt(volt_cx *cx, int fd, uint8_t flags) {
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, fd);
    if (!e) return; // no memory, or fd is out of range: the first operation reports it
    volt__lock(&e->lock);
    int is_stale = e->mode != VOLT__MODE_NONE || e->reopened_fd > 0 || e->backoff != NULL;
    volt__unlock(&e->lock);
    if (is_stale) volt__fd_reset(cx, e, fd);
    volt__store_rlx(&e->flags, flags); // rlx: no other thread has the number yet
}

#endif // VOLT_NO_IO

//==================================================================================================
// >>io  reads, writes, calls of the program
//==================================================================================================
// An operation on a descriptor is tried at once, and its node is linked only after EAGAIN. When the
// node is fired, the operation is tried again. In each poll volt__io_begin does steps 1 to 3 of a
// leaf (>>leaf) and acknowledges a fired node. volt__io_step then makes the attempts, each through
// three layers: volt__io_try holds a pin, volt__io_perform goes by the flags of the entry, and
// volt__io_call makes the system call. Accept, readiness and poll sets (>>net) use these functions,
// too.
//   - System calls do not wait: transfers on a socket pass MSG_DONTWAIT; a listener has O_NONBLOCK,
//     and any other file has it at least during the call. Only a disk file may delay the worker,
//     since epoll cannot wait for it, and a file whose O_NONBLOCK another process has cleared.
//   - Each attempt holds a pin, so that volt_close does not close the number during the attempt.
//   - An operation belongs to one generation of its entry. If the entry was retired since the
//     operation began, the next attempt gives -EBADF. But an attempt that finds that the number was
//     closed without volt_close resets the entry, and begins again with the new file.
//   - A volt__io lives for one poll. Between polls, prev_ of a fired node is the generation, and so
//     is that of an idle node whose next_ points to itself; a linked node waits in the current
//     generation of its entry. key_ is the number of bytes that volt_read_exact or volt_write_all
//     has moved.
// All functions are called in a poll; volt__fd_unpin_and_close may be called by any thread.
#ifndef VOLT_NO_IO
// A new volt__op has its direction and what it wants of the entry in volt__io_init, its cases in
// volt__io_call_socket and volt__io_call_once, and its arguments in volt__io. volt__io_perform
// decides whether -ENOTSOCK means another file, and volt__io_once returns 0 for 0 bytes without a
// call.
typedef enum volt__op {
    VOLT__OP_READ,
    VOLT__OP_READV,
    VOLT__OP_WRITE,
    VOLT__OP_WRITEV,
    VOLT__OP_ACCEPT,
    VOLT__OP_CALL // io->call, with io->buf as its argument
} volt__op;
typedef struct volt__io {
    volt__op op;
    // dir: VOLT__RD or VOLT__WR; count: of iovecs, 0 for a plain buffer
    int fd, dir, count;
    // has_gen: snapshot.gen is the generation of the operation; is_ready: an event ended its wait
    int has_gen, is_ready;
    // flags that the entry must have, see volt__fd_probe
    int wanted;
    volt_io_fn *call;
    // gen and seq of the entry at the last attempt
    volt__fd_snapshot snapshot;
    // a plain buffer, or the array of iovecs; writes only read it
    char *buf;
    // bytes to transfer; of iovecs: see volt__iov_len
    size_t len;
} volt__io;

static struct iovec *volt__iov(const volt__io *io) {
    return (struct iovec *)(void *)io->buf;
}
// A write to a pipe may raise SIGPIPE, which volt's own threads block. The thread of volt_run or of
// a guest (`is_caller`) keeps its signal mask; there the signal is blocked during the call, and
// consumed if the call has raised it. Returns the number of bytes or -errno.
static int64_t volt__write_nosignal(volt_cx *cx, const volt__io *io) {
    volt__sigpipe held;
    int is_caller = !cx->worker_->has_thread;
    if (is_caller) volt__sys_sigpipe_block(&held);
    int64_t rc = io->op == VOLT__OP_WRITE ? VOLT_SYS(write, io->fd, io->buf, io->len)
                                          : VOLT_SYS(writev, io->fd, volt__iov(io), io->count);
    int error = rc < 0 ? errno : 0;
    if (is_caller) volt__sys_sigpipe_unblock(&held, error == EPIPE);
    return rc < 0 ? -error : rc;
}
// Sets up *m for the iovecs, and returns it.
static struct msghdr *volt__io_msghdr(const volt__io *io, struct msghdr *m) {
    memset(m, 0, sizeof *m);
    m->msg_iov = volt__iov(io);
    m->msg_iovlen = (__typeof__(m->msg_iovlen))io->count;
    return m;
}
// A call on a socket. MSG_DONTWAIT makes this call alone non-blocking, because a process that
// shares the socket may change the mode of the socket, or rely on it. Returns the number of bytes,
// or -1 with errno.
static int64_t volt__io_call_socket(const volt__io *io) {
    int flags = MSG_DONTWAIT | (io->dir == VOLT__WR ? MSG_NOSIGNAL : 0);
    struct msghdr m;
    switch (io->op) {
    case VOLT__OP_READ: return VOLT_SYS(recv, io->fd, io->buf, io->len, flags);
    case VOLT__OP_WRITE: return VOLT_SYS(send, io->fd, io->buf, io->len, flags);
    case VOLT__OP_READV: return VOLT_SYS(recvmsg, io->fd, volt__io_msghdr(io, &m), flags);
    case VOLT__OP_WRITEV: return VOLT_SYS(sendmsg, io->fd, volt__io_msghdr(io, &m), flags);
    case VOLT__OP_ACCEPT: // volt__io_call_once makes these calls
    case VOLT__OP_CALL: break;
    }
    VOLT_ASSERT(io->op < VOLT__OP_ACCEPT);
    errno = EINVAL;
    return -1;
}
// One system call. `flags` are those of the entry: only VOLT__FD_SOCKET matters. Returns the result
// or -errno.
static int64_t volt__io_call_once(volt_cx *cx, const volt__io *io, int flags) {
    int64_t rc = -1;
    if (flags & VOLT__FD_SOCKET && io->op < VOLT__OP_ACCEPT) {
        rc = volt__io_call_socket(io);
        return rc < 0 ? -errno : rc;
    }
    switch (io->op) {
    case VOLT__OP_ACCEPT: return volt__sys_accept(io->fd, (volt_addr *)(void *)io->buf);
    case VOLT__OP_CALL: return io->call(io->fd, io->buf);
    case VOLT__OP_WRITE:
    case VOLT__OP_WRITEV: return volt__write_nosignal(cx, io);
    case VOLT__OP_READ: rc = VOLT_SYS(read, io->fd, io->buf, io->len); break;
    case VOLT__OP_READV: rc = VOLT_SYS(readv, io->fd, volt__iov(io), io->count); break;
    }
    return rc < 0 ? -errno : rc;
}
// As volt__io_call_once, but repeats the call after EINTR.
static int64_t volt__io_call(volt_cx *cx, const volt__io *io, int flags) {
    int64_t rc;
    do rc = volt__io_call_once(cx, io, flags);
    while (rc == -EINTR);
    return rc;
}
// Sets O_NONBLOCK only during the call, because other processes share the description. Two numbers
// may share it, too: of two calls at once, the first to end would make the other one block. So one
// such call runs at a time in the runtime.
static int64_t volt__io_call_toggled(volt_cx *cx, const volt__io *io) {
    volt__fds *f = &cx->rt_->fds;
    int64_t rc;
    volt__lock(&f->toggle_lock);
    int mode = VOLT_SYS(fcntl, io->fd, F_GETFL);
    int is_blocking = mode >= 0 && !(mode & O_NONBLOCK);
    if (mode < 0 || (is_blocking && VOLT_SYS(fcntl, io->fd, F_SETFL, mode | O_NONBLOCK) < 0)) {
        rc = -errno;
    } else {
        rc = volt__io_call(cx, io, 0);
        if (is_blocking) VOLT_SYS(fcntl, io->fd, F_SETFL, mode);
    }
    volt__unlock(&f->toggle_lock);
    return rc;
}
// Result of an attempt on a number that belongs to another file by now. It is no -errno.
#define VOLT__STALE INT64_MIN
static int volt__is_same_file(int a, int b) {
    struct stat s, t;
    return VOLT_SYS(fstat, a, &s) == 0 && VOLT_SYS(fstat, b, &t) == 0 && s.st_dev == t.st_dev &&
           s.st_ino == t.st_ino && s.st_rdev == t.st_rdev;
}
// Calls on reopened_fd, the description that volt has opened for this entry. Holds the lock of the
// entry, so that the description is not closed during the call. Returns VOLT__STALE if the number
// and the description are no longer the same file, -EBADF if the entry was retired.
static int64_t volt__io_call_reopened(volt_cx *cx, volt__fd *e, const volt__io *io) {
    volt__io call = *io;
    volt__lock(&e->lock);
    call.fd = e->reopened_fd;
    int64_t rc = -EBADF;
    // volt is not told of a dup2(2) onto the number, such as of a log file in place of a terminal.
    if (call.fd > 0 && !volt__is_same_file(io->fd, call.fd)) rc = VOLT__STALE;
    else if (call.fd > 0) rc = volt__io_call(cx, &call, 0);
    volt__unlock(&e->lock);
    return rc;
}
// Debug builds: returns VOLT__STALE if a call on the file could block the worker. Then the number
// was closed without volt_close and belongs to another file, or a process that shares the file has
// cleared O_NONBLOCK. After a reset of the entry the file is probed again, which repairs both.
// Otherwise returns 0, or -errno. Release builds return 0.
static int64_t volt__fd_check_file(int fd, int flags) {
    struct stat st;
    if (!VOLT_DEBUG || flags & (VOLT__FD_SOCKET | VOLT__FD_REOPENED | VOLT__FD_TOGGLED)) return 0;
    if (flags & VOLT__FD_DISK) {
        if (VOLT_SYS(fstat, fd, &st) < 0) return -errno;
        return volt__is_disk(st.st_mode) ? 0 : VOLT__STALE;
    }
    int mode = VOLT_SYS(fcntl, fd, F_GETFL);
    if (mode < 0) return -errno;
    return mode & O_NONBLOCK ? 0 : VOLT__STALE;
}
// Drops a pin; if it was the last one of a closing entry, closes the descriptor. Called by any
// thread.
static void volt__fd_unpin_and_close(volt_rt *rt, volt__fd *e, int fd) {
    volt__chain c;
    if (VOLT__LIKELY(!volt__fd_unpin(e))) return;
    volt__chain_init(&c);
    volt__fd_retire(&rt->fds, e, fd, 1, &c);
    volt__schedule_chain(&c);
}
// Returns 1 if epoll would report the direction as ready. Used in the last try, the poll before a
// time limit cancels the operation: an event may have come that no event poll has fetched yet.
// Trying the call itself would be wrong: it can move a few bytes although epoll reports nothing, so
// writes to a peer that has stopped reading would never time out.
static int volt__is_ready_now(int fd, int dir) {
    struct pollfd p;
    p.fd = fd;
    p.events = dir == VOLT__RD ? POLLIN | POLLPRI | POLLRDHUP : POLLOUT;
    p.revents = 0;
    return VOLT_SYS(poll, &p, 1, 0) > 0 && !(p.revents & POLLNVAL);
}
// Returns 1 if the operation must be tried although its node is linked, or its entry known to be
// empty.
static int volt__is_last_try(const volt_cx *cx, int fd, int dir) {
    return VOLT__UNLIKELY(cx->last_tries_ > 0) && volt__is_ready_now(fd, dir);
}
// Called under a pin, if the entry is in the generation of the operation. Returns the result of the
// call, -EAGAIN (without a call if the entry is known to be empty), VOLT__STALE, or another -errno.
static int64_t volt__io_perform(volt_cx *cx, volt__fd *e, volt__io *io) {
    int flags = volt__load_rlx(&e->flags); // rlx: a missing bit only costs a probe
    if (VOLT__UNLIKELY((flags & io->wanted) != io->wanted))
        flags = volt__fd_probe(e, io->fd, io->snapshot.gen, io->wanted);
    if (VOLT__UNLIKELY(flags < 0)) return flags;
    if (volt__fd_is_known_empty(e, io->dir) && !volt__is_last_try(cx, io->fd, io->dir))
        return -EAGAIN;
    if (VOLT__UNLIKELY(flags & (VOLT__FD_REOPENED | VOLT__FD_TOGGLED)))
        return flags & VOLT__FD_REOPENED ? volt__io_call_reopened(cx, e, io)
                                         : volt__io_call_toggled(cx, io);
    int64_t rc = volt__fd_check_file(io->fd, flags);
    if (VOLT__UNLIKELY(rc < 0)) return rc;
    rc = volt__io_call(cx, io, flags);
    // the flags say socket, so the number belongs to another file; for an accept: a wrong argument
    if (rc == -ENOTSOCK && flags & VOLT__FD_SOCKET && io->op != VOLT__OP_ACCEPT) return VOLT__STALE;
    if (rc > 0 && (size_t)rc < io->len && (flags & VOLT__FD_STREAM) && io->count == 0)
        volt__fd_mark_empty(e, io->dir, io->snapshot.seq, io->buf, (size_t)rc, io->len);
    return rc;
}
// One attempt, under a pin. Returns the result of volt__io_perform, or -EBADF if the descriptor is
// closing or was retired since the operation began.
static int64_t volt__io_try(volt_cx *cx, volt__fd *e, volt__io *io) {
    int64_t rc = -EBADF;
    if (VOLT__LIKELY(volt__fd_pin(e))) {
        uint32_t gen = io->snapshot.gen;
        io->snapshot = volt__fd_take_snapshot(e);
        if (VOLT__LIKELY(!io->has_gen || io->snapshot.gen == gen)) rc = volt__io_perform(cx, e, io);
        io->has_gen = 1;
    }
    volt__fd_unpin_and_close(cx->rt_, e, io->fd);
    return rc;
}
// Called when a poll ends with an idle node because its budget is used up. The next poll compares
// the generation, and so notices if the number belongs to another file by then. An idle node is on
// no list: prev_ can hold the generation, and next_ == node marks that it does.
static void volt__io_save_gen(volt__node *node, const volt__io *io) {
    VOLT_ASSERT(volt__node_state(node) == VOLT__IDLE && io->has_gen);
    node->prev_ = (volt__node *)(uintptr_t)io->snapshot.gen;
    node->next_ = node;
}
// Takes back a generation that volt__io_save_gen has stored, if any. Called with an idle node.
static void volt__io_restore_gen(volt__node *node, volt__io *io) {
    if (VOLT__LIKELY(node->next_ != node)) return;
    io->has_gen = 1;
    io->snapshot.gen = (uint32_t)(uintptr_t)node->prev_;
    node->next_ = node->prev_ = NULL;
}
// Called when the budget is used up. An operation that has not been tried yet belongs to the file
// that the number has now, so the generation is saved, unless the node has one already.
static void volt__io_postpone(volt_cx *cx, volt__node *node, volt__io *io) {
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, io->fd);
    if (!e || volt__node_state(node) != VOLT__IDLE || node->next_ == node) return;
    io->snapshot = volt__fd_take_snapshot(e);
    io->has_gen = 1;
    volt__io_save_gen(node, io);
}
// The first step of an operation in each poll. Charges the budget, and ends the wait if the node
// was fired, the await is cancelled, or a last try is due. Returns 1 if the caller must try the
// operation; then the node is idle. Returns 0 if *out is the result of the poll.
static int volt__io_begin(volt_cx *cx, volt__node *node, volt__io *io, volt_poll *out) {
    if (!volt__budget_charge(cx)) {
        volt__io_postpone(cx, node, io);
        *out = volt_pending();
        return 0;
    }
    uint8_t state = volt__node_state(node);
    int is_cancelled = volt__scope_is_cancelled(cx);
    if (state == VOLT__IDLE) volt__io_restore_gen(node, io);
    if (state == VOLT__IDLE && !is_cancelled) return 1;
    if (state == VOLT__LINKED && !is_cancelled && !volt__is_last_try(cx, io->fd, io->dir)) {
        *out = volt__leaf_pending(cx, node, (uint32_t)io->fd);
        return 0;
    }
    if (state != VOLT__IDLE) state = volt__fd_end_wait(node, cx->task_, io->dir);
    if (state == VOLT__FIRED || state == VOLT__LINKED) {
        io->has_gen = 1;
        io->is_ready = state == VOLT__FIRED;
        io->snapshot.gen = (uint32_t)(uintptr_t)node->prev_;
    }
    if (!is_cancelled && state != VOLT__CLOSED) return 1;
    *out = volt__leaf_ready(node, is_cancelled ? -ECANCELED : -EBADF);
    return 0;
}
// Tries until the operation is done or the node is linked, at most 16 times. Returns the result,
// -EAGAIN if the caller must return pending (the node is linked, or the task was woken), or another
// -errno.
static int64_t volt__io_step(volt_cx *cx, volt__node *node, volt__io *io) {
    volt_rt *rt = cx->rt_;
    volt__fd *e = volt__fd_lookup(&rt->fds, io->fd);
    if (!e) return volt__fd_lookup_error(io->fd);
    for (int tries = 0; tries < 16; tries++) {
        int64_t rc = volt__io_try(cx, e, io);
        if (rc == -EAGAIN)
            rc = volt__fd_wait(&rt->fds, e, io->fd, cx->worker_->index, io->dir, io->snapshot, node,
                               cx->task_);
        else if (rc != VOLT__STALE) return rc;
        else rc = VOLT__FD_REUSED;
        if (rc == VOLT__FD_REUSED) {
            volt__fd_reset(cx, e, io->fd);
            io->has_gen = 0;
        } else if (rc != VOLT__FD_AGAIN) {
            return rc == VOLT__FD_LINKED ? -EAGAIN : rc;
        }
        volt__fd_fire_if_always(e);
    }
    if (io->has_gen) volt__io_save_gen(node, io); // else the last attempt has reset the entry
    // epoll reports the file as ready, but its calls give EAGAIN: other tasks run before a next try
    (void)volt__task_wake(cx->task_);
    return -EAGAIN;
}
static inline void volt__io_init(volt__io *io, volt__op op, int fd, const void *buf, size_t len,
                                 int count) {
    io->fd = fd;
    io->op = op;
    io->dir = op == VOLT__OP_WRITE || op == VOLT__OP_WRITEV ? VOLT__WR : VOLT__RD;
    io->count = count;
    io->buf = (char *)(uintptr_t)buf; // writes only read it
    io->len = len;
    io->has_gen = io->is_ready = 0;
    io->snapshot.gen = io->snapshot.seq = 0;
    io->wanted = VOLT__FD_PROBED;
    if (op == VOLT__OP_ACCEPT) io->wanted |= VOLT__FD_SOCKET | VOLT__FD_NONBLOCK;
}
// A call has a length of 1: it is made also if it moves no bytes, and none of its results counts as
// a short transfer.
static void volt__io_init_call(volt__io *io, int fd, int dir, int wanted, volt_io_fn *call,
                               void *arg) {
    volt__io_init(io, VOLT__OP_CALL, fd, arg, 1, 0);
    io->dir = dir;
    io->wanted |= wanted;
    io->call = call;
}
// A poll of an operation that ends with its first transfer.
static volt_poll volt__io_once(volt_cx *cx, volt__io *io) {
    volt_poll out;
    volt__node *node = volt__leaf(cx, io->dir == VOLT__RD ? VOLT__LEAF_RD : VOLT__LEAF_WR);
    if (io->op != VOLT__OP_CALL) volt__check_not_on_stack(cx, io->buf);
    if (!volt__io_begin(cx, node, io, &out)) return out;
    if (io->len == 0 || io->count < 0) return volt__leaf_ready(node, io->len == 0 ? 0 : -EINVAL);
    int64_t rc = volt__io_step(cx, node, io);
    return rc == -EAGAIN ? volt__leaf_pending(cx, node, (uint32_t)io->fd)
                         : volt__leaf_ready(node, rc);
}
VOLT_API volt_poll volt_read(volt_cx *cx, int fd, void *buf, size_t len) {
    volt__io io;
    volt__io_init(&io, VOLT__OP_READ, fd, buf, len, 0);
    return volt__io_once(cx, &io);
}
VOLT_API volt_poll volt_write(volt_cx *cx, int fd, const void *buf, size_t len) {
    volt__io io;
    volt__io_init(&io, VOLT__OP_WRITE, fd, buf, len, 0);
    return volt__io_once(cx, &io);
}
// The kernel takes at most 1024 iovecs in one call. The others are left to the next operation, like
// the rest of a short write.
enum { VOLT__IOV_MAX = 1024 };
// Returns the number of bytes, where 0 means that no call is needed. Invalid arguments do not count
// as 0, so that the kernel or volt__io_once refuses them: the result is 1 for a missing array or
// n < 0, and SIZE_MAX for a sum that overflows.
static size_t volt__iov_len(const struct iovec *iov, int n) {
    size_t len = 0;
    if (n < 0 || (n > 0 && !iov)) return 1;
    for (int i = 0; i < n && i < VOLT__IOV_MAX; i++) {
        if (len > SIZE_MAX - iov[i].iov_len) return SIZE_MAX;
        len += iov[i].iov_len;
    }
    return len;
}
static void volt__io_init_iov(volt__io *io, volt__op op, int fd, const struct iovec *iov, int n) {
    // skips empty parts: 1024 of them at the beginning would give 0, as at the end of the file
    for (; n > 0 && iov && iov->iov_len == 0; n--) iov++;
    volt__io_init(io, op, fd, iov, volt__iov_len(iov, n), n < VOLT__IOV_MAX ? n : VOLT__IOV_MAX);
}
VOLT_API volt_poll volt_readv(volt_cx *cx, int fd, const struct iovec *iov, int n) {
    volt__io io;
    volt__io_init_iov(&io, VOLT__OP_READV, fd, iov, n);
    return volt__io_once(cx, &io);
}
VOLT_API volt_poll volt_writev(volt_cx *cx, int fd, const struct iovec *iov, int n) {
    volt__io io;
    volt__io_init_iov(&io, VOLT__OP_WRITEV, fd, iov, n);
    return volt__io_once(cx, &io);
}
// The memory that volt_read_exact, volt_write_all or volt_writev_all transfers: `len` bytes, at
// `buf` or in n iovecs.
typedef struct volt__io_whole {
    uint64_t len; // iovecs may repeat memory, so that the sum is beyond 32 bits
    char *buf;
    const struct iovec *iov; // NULL: buf
    int n;
} volt__io_whole;
enum { VOLT__IOV_PART = 16 }; // iovecs of one call of volt_writev_all
// Sets *io to what is left of the iovecs after `done` bytes, which are not all, in part[]: at most
// VOLT__IOV_PART.
static void volt__io_iov_rest(volt__io *io, const volt__io_whole *all, uint64_t done,
                              struct iovec *part) {
    int i = 0, n = 0;
    for (; done >= all->iov[i].iov_len; i++) done -= all->iov[i].iov_len;
    VOLT_ASSERT(i < all->n);
    for (; i < all->n && n < VOLT__IOV_PART; i++, n++) {
        part[n] = all->iov[i];
        part[n].iov_base = (char *)part[n].iov_base + done;
        part[n].iov_len -= (size_t)done;
        done = 0;
    }
    io->buf = (char *)(void *)part;
    io->count = n;
    io->len = volt__iov_len(part, n);
}
// The bytes moved are counted in key_ of the node, so that the count outlasts the poll and
// volt_progress can read it.
static volt_poll volt__io_all(volt_cx *cx, volt__io *io, const volt__io_whole *all) {
    volt_poll out;
    struct iovec part[VOLT__IOV_PART];
    volt__node *node = volt__leaf(cx, io->dir == VOLT__RD ? VOLT__LEAF_RD : VOLT__LEAF_WR);
    if (!volt__io_begin(cx, node, io, &out)) return out;
    if (all->len > (uint64_t)INT64_MAX || all->n < 0 || (all->n > 0 && !all->iov))
        return volt__leaf_ready(node, -EINVAL);
    for (;;) {
        uint64_t done = (uint64_t)node->key_.moved_;
        VOLT_ASSERT(done <= all->len);
        if (done == all->len) return volt__leaf_ready(node, (int64_t)all->len);
        if (all->iov) {
            volt__io_iov_rest(io, all, done, part);
        } else {
            io->buf = all->buf + done;
            io->len = (size_t)(all->len - done);
        }
        int64_t rc = volt__io_step(cx, node, io);
        if (rc == -EAGAIN) return volt__leaf_pending(cx, node, (uint32_t)io->fd);
        if (rc <= 0) return volt__leaf_ready(node, rc < 0 ? rc : -EPIPE); // 0: the stream has ended
        node->key_.moved_ += rc;
        if ((uint64_t)node->key_.moved_ < all->len && !volt__budget_charge(cx)) {
            volt__io_save_gen(node, io);
            return volt_pending();
        }
    }
}
static volt_poll volt__io_all_of(volt_cx *cx, volt__op op, int fd, const void *buf, size_t len) {
    volt__io io;
    volt__io_whole all = { len, (char *)(uintptr_t)buf, NULL, 0 };
    volt__io_init(&io, op, fd, buf, len, 0);
    volt__check_not_on_stack(cx, buf);
    return volt__io_all(cx, &io, &all);
}
VOLT_API volt_poll volt_read_exact(volt_cx *cx, int fd, void *buf, size_t len) {
    return volt__io_all_of(cx, VOLT__OP_READ, fd, buf, len);
}
VOLT_API volt_poll volt_write_all(volt_cx *cx, int fd, const void *buf, size_t len) {
    return volt__io_all_of(cx, VOLT__OP_WRITE, fd, buf, len);
}
VOLT_API volt_poll volt_writev_all(volt_cx *cx, int fd, const struct iovec *iov, int n) {
    volt__io io;
    volt__io_whole all = { 0, NULL, iov, n };
    for (int i = 0; iov && i < n; i++)
        all.len = iov[i].iov_len > UINT64_MAX - all.len ? UINT64_MAX : all.len + iov[i].iov_len;
    volt__check_not_on_stack(cx, iov);
    volt__io_init(&io, VOLT__OP_WRITEV, fd, iov, all.len > 0, 0);
    return volt__io_all(cx, &io, &all);
}

// ---- calls of the program, and reads and writes that do not wait
// The direction of events that volt_io and volt_try_io are given, or 0 if they are not one of both.
static int volt__io_direction(uint32_t events) {
    return events == VOLT_IN ? VOLT__RD : events == VOLT_OUT ? VOLT__WR : 0;
}
VOLT_API volt_poll volt_io(volt_cx *cx, int fd, uint32_t events, volt_io_fn *try_once, void *arg) {
    volt__io io;
    int dir = volt__io_direction(events);
    if (dir == 0) return volt_ready(-EINVAL);
    volt__io_init_call(&io, fd, dir, VOLT__FD_NONBLOCK, try_once, arg);
    return volt__io_once(cx, &io);
}
// A call that reports readiness. It is not made while an entry in epoll is known to be empty. So
// the entry is one that epoll reports, or one that has yet to be registered.
static int64_t volt__ready_call(int fd, void *entry) {
    const volt__fd *e = (const volt__fd *)entry;
    (void)fd;
    uint8_t mode = volt__load_rlx(&e->mode); // rlx: hint, decided under lock by the wait
    return mode == VOLT__MODE_EDGE || mode == VOLT__MODE_ALWAYS ? 0 : -EAGAIN;
}
static volt_poll volt__io_ready(volt_cx *cx, int fd, int dir) {
    volt__io io;
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, fd);
    if (!e) return volt_ready(volt__fd_lookup_error(fd));
    volt__io_init_call(&io, fd, dir, 0, volt__ready_call, e);
    return volt__io_once(cx, &io);
}
VOLT_API volt_poll volt_read_ready(volt_cx *cx, int fd) {
    return volt__io_ready(cx, fd, VOLT__RD);
}
VOLT_API volt_poll volt_write_ready(volt_cx *cx, int fd) {
    return volt__io_ready(cx, fd, VOLT__WR);
}
// Makes an attempt outside a wait. -EAGAIN clears the readiness of the entry, so that the next
// volt_read_ready or volt_write_ready waits.
static int64_t volt__io_now(volt_cx *cx, volt__io *io) {
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, io->fd);
    if (!e) return volt__fd_lookup_error(io->fd);
    if (io->len == 0 || io->count < 0) return io->len == 0 ? 0 : -EINVAL;
    for (int tries = 0; tries < 16; tries++) {
        int64_t rc = volt__io_try(cx, e, io);
        if (rc == -EAGAIN) volt__fd_mark_drained(e, io->dir, io->snapshot);
        if (rc != VOLT__STALE) return rc;
        volt__fd_reset(cx, e, io->fd);
        io->has_gen = 0;
    }
    return -EBADF; // another thread keeps closing and opening the number
}
VOLT_API int64_t volt_try_read(volt_cx *cx, int fd, void *buf, size_t len) {
    volt__io io;
    volt__io_init(&io, VOLT__OP_READ, fd, buf, len, 0);
    return volt__io_now(cx, &io);
}
VOLT_API int64_t volt_try_readv(volt_cx *cx, int fd, const struct iovec *iov, int n) {
    volt__io io;
    volt__io_init_iov(&io, VOLT__OP_READV, fd, iov, n);
    return volt__io_now(cx, &io);
}
VOLT_API int64_t volt_try_write(volt_cx *cx, int fd, const void *buf, size_t len) {
    volt__io io;
    volt__io_init(&io, VOLT__OP_WRITE, fd, buf, len, 0);
    return volt__io_now(cx, &io);
}
VOLT_API int64_t volt_try_writev(volt_cx *cx, int fd, const struct iovec *iov, int n) {
    volt__io io;
    volt__io_init_iov(&io, VOLT__OP_WRITEV, fd, iov, n);
    return volt__io_now(cx, &io);
}
VOLT_API int64_t volt_try_io(volt_cx *cx, int fd, uint32_t events, volt_io_fn *try_once,
                             void *arg) {
    volt__io io;
    int dir = volt__io_direction(events);
    if (dir == 0) return -EINVAL;
    volt__io_init_call(&io, fd, dir, VOLT__FD_NONBLOCK, try_once, arg);
    return volt__io_now(cx, &io);
}

#endif // VOLT_NO_IO

//==================================================================================================
// >>messages  messages on sockets, datagrams
//==================================================================================================
// Each operation is a call of >>io, made of recvmsg, sendmsg and their forms for several messages.
// Its arguments are in a struct on the stack, because each poll passes them again.
//   - Every call passes MSG_DONTWAIT, so the socket need not have O_NONBLOCK.
//   - Nothing is kept between two polls: a cancelled operation has moved no message.
//   - A kernel that lacks sendmmsg, recvmmsg or UDP_SEGMENT is found out at each call.
// All functions are called in a poll, except those that open a socket or set its options, and those
// on control data: any thread may call these.
#ifndef VOLT_NO_IO
#ifdef __GLIBC__
typedef int volt__message_flags;
#else
typedef unsigned volt__message_flags;
#endif
typedef struct volt__message {
    struct msghdr head;
    struct iovec part;
    volt_addr *from;
    int flags;
} volt__message;

static int64_t volt__recvmsg_once(int fd, struct msghdr *m, int flags) {
    ssize_t rc = VOLT_SYS(recvmsg, fd, m, flags | MSG_DONTWAIT);
    return rc < 0 ? -errno : (int64_t)rc;
}
static int64_t volt__sendmsg_once(int fd, const struct msghdr *m, int flags) {
    ssize_t rc = VOLT_SYS(sendmsg, fd, m, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    return rc < 0 ? -errno : (int64_t)rc;
}
static void volt__message_init(volt__message *m, const void *buf, size_t len, int flags) {
    memset(m, 0, sizeof *m);
    m->part.iov_base = (void *)(uintptr_t)buf; // sends only read it
    m->part.iov_len = len;
    m->head.msg_iov = &m->part;
    m->head.msg_iovlen = 1;
    m->flags = flags;
}
// The address is that of the sender only if a message was received: a stream gives none.
static int64_t volt__recv_call(int fd, void *arg) {
    volt__message *m = (volt__message *)arg;
    volt_addr from;
    if (m->from) {
        memset(&from, 0, sizeof from);
        m->head.msg_name = from.sa_;
        m->head.msg_namelen = sizeof from.sa_;
    }
    int64_t rc = volt__recvmsg_once(fd, &m->head, m->flags);
    if (rc < 0) return rc;
    if (m->from) {
        from.len_ = m->head.msg_namelen < sizeof from.sa_ ? m->head.msg_namelen
                                                          : (uint32_t)sizeof from.sa_;
        *m->from = from;
    }
    return m->head.msg_flags & MSG_TRUNC && !(m->flags & MSG_TRUNC) ? -EMSGSIZE : rc;
}
static int64_t volt__send_call(int fd, void *arg) {
    volt__message *m = (volt__message *)arg;
    return volt__sendmsg_once(fd, &m->head, m->flags);
}
static volt_poll volt__message_poll(volt_cx *cx, int fd, int dir, volt_io_fn *call, void *arg) {
    volt__io io;
    volt__io_init_call(&io, fd, dir, VOLT__FD_SOCKET, call, arg);
    return volt__io_once(cx, &io);
}
VOLT_API volt_poll volt_recvfrom(volt_cx *cx, int fd, void *buf, size_t len, int flags,
                                 volt_addr *from_or_null) {
    volt__message m;
    volt__check_not_on_stack(cx, buf);
    volt__message_init(&m, buf, len, flags);
    m.from = from_or_null;
    return volt__message_poll(cx, fd, VOLT__RD, volt__recv_call, &m);
}
VOLT_API volt_poll volt_recv(volt_cx *cx, int fd, void *buf, size_t len, int flags) {
    return volt_recvfrom(cx, fd, buf, len, flags, NULL);
}
static void volt__message_to(volt__message *m, const volt_addr *to) {
    m->head.msg_name = (void *)(uintptr_t)to->sa_; // only read
    m->head.msg_namelen = (socklen_t)to->len_;
}
VOLT_API volt_poll volt_sendto(volt_cx *cx, int fd, const void *buf, size_t len, int flags,
                               const volt_addr *to_or_null) {
    volt__message m;
    volt__check_not_on_stack(cx, buf);
    volt__message_init(&m, buf, len, flags);
    if (to_or_null) volt__message_to(&m, to_or_null);
    return volt__message_poll(cx, fd, VOLT__WR, volt__send_call, &m);
}
VOLT_API volt_poll volt_send(volt_cx *cx, int fd, const void *buf, size_t len, int flags) {
    return volt_sendto(cx, fd, buf, len, flags, NULL);
}

// ---- messages of the caller's

typedef struct volt__messages {
    struct mmsghdr *v;
    struct msghdr *head; // of one message, in place of v
    unsigned n;
    int flags;
} volt__messages;
static int64_t volt__recvmsg_call(int fd, void *arg) {
    volt__messages *m = (volt__messages *)arg;
    return volt__recvmsg_once(fd, m->head, m->flags);
}
static int64_t volt__sendmsg_call(int fd, void *arg) {
    volt__messages *m = (volt__messages *)arg;
    return volt__sendmsg_once(fd, m->head, m->flags);
}
VOLT_API volt_poll volt_recvmsg(volt_cx *cx, int fd, struct msghdr *m, int flags) {
    volt__messages args = { NULL, m, 1, flags };
    volt__check_not_on_stack(cx, m);
    return volt__message_poll(cx, fd, VOLT__RD, volt__recvmsg_call, &args);
}
VOLT_API volt_poll volt_sendmsg(volt_cx *cx, int fd, const struct msghdr *m, int flags) {
    volt__messages args = { NULL, (struct msghdr *)(uintptr_t)m, 1, flags }; // only read
    volt__check_not_on_stack(cx, m);
    return volt__message_poll(cx, fd, VOLT__WR, volt__sendmsg_call, &args);
}
// One message after the other, where the kernel has no call for several.
static int64_t volt__messages_singly(int fd, const volt__messages *m, int is_send) {
    for (unsigned i = 0; i < m->n; i++) {
        struct msghdr *head = &m->v[i].msg_hdr;
        int64_t rc = is_send ? volt__sendmsg_once(fd, head, m->flags)
                             : volt__recvmsg_once(fd, head, m->flags);
        if (rc < 0) return i > 0 ? (int64_t)i : rc;
        m->v[i].msg_len = (unsigned)rc;
    }
    return (int64_t)m->n;
}
static int64_t volt__recvmmsg_call(int fd, void *arg) {
    volt__messages *m = (volt__messages *)arg;
    int flags = m->flags | MSG_DONTWAIT;
    int rc = VOLT_SYS(recvmmsg, fd, m->v, m->n, (volt__message_flags)flags, NULL);
    if (rc < 0 && volt__sys_is_unsupported(errno)) return volt__messages_singly(fd, m, 0);
    return rc < 0 ? -errno : rc;
}
static int64_t volt__sendmmsg_call(int fd, void *arg) {
    volt__messages *m = (volt__messages *)arg;
    int flags = m->flags | MSG_DONTWAIT | MSG_NOSIGNAL;
    int rc = VOLT_SYS(sendmmsg, fd, m->v, m->n, (volt__message_flags)flags);
    if (rc < 0 && volt__sys_is_unsupported(errno)) return volt__messages_singly(fd, m, 1);
    return rc < 0 ? -errno : rc;
}
VOLT_API volt_poll volt_recvmmsg(volt_cx *cx, int fd, struct mmsghdr *v, unsigned n, int flags) {
    volt__messages args = { v, NULL, n, flags };
    if (n == 0) return volt_ready(0);
    volt__check_not_on_stack(cx, v);
    return volt__message_poll(cx, fd, VOLT__RD, volt__recvmmsg_call, &args);
}
VOLT_API volt_poll volt_sendmmsg(volt_cx *cx, int fd, struct mmsghdr *v, unsigned n, int flags) {
    volt__messages args = { v, NULL, n, flags };
    if (n == 0) return volt_ready(0);
    volt__check_not_on_stack(cx, v);
    return volt__message_poll(cx, fd, VOLT__WR, volt__sendmmsg_call, &args);
}

#if !defined(VOLT_NO_UDP) || !defined(VOLT_NO_UNIX)
// Appends one item of control data. Returns 0 or -ENOSPC.
static int volt__message_control(struct msghdr *m, size_t room, int level, int type,
                                 const void *data, size_t len) {
    size_t at = m->msg_controllen;
    struct cmsghdr head;
    if (at + CMSG_SPACE(len) > room) return -ENOSPC;
    char *to = (char *)m->msg_control + at;
    memset(&head, 0, sizeof head);
    memset(to, 0, CMSG_SPACE(len));
    head.cmsg_len = (__typeof__(head.cmsg_len))CMSG_LEN(len);
    head.cmsg_level = level;
    head.cmsg_type = type;
    memcpy(to, &head, sizeof head);
    memcpy(to + CMSG_LEN(0), data, len);
    m->msg_controllen = (__typeof__(m->msg_controllen))(at + CMSG_SPACE(len));
    return 0;
}
// CMSG_NXTHDR, which in musl is an expression that compilers warn of.
static struct cmsghdr *volt__message_next(const struct msghdr *m, struct cmsghdr *c) {
    size_t from = (size_t)((char *)c - (char *)m->msg_control), left = m->msg_controllen - from;
    size_t step = CMSG_ALIGN((size_t)c->cmsg_len);
    if (c->cmsg_len < sizeof *c || left < step || left - step < sizeof *c) return NULL;
    return (struct cmsghdr *)(void *)((char *)c + step);
}
#endif

#ifndef VOLT_NO_UDP
// ---- opening, multicast

enum { VOLT__UDP_SEGMENT = 103, VOLT__UDP_GRO = 104 }; // not in every C library's headers
static int volt__sock_family(int fd) {
    int family = AF_UNSPEC;
    socklen_t len = sizeof family;
    return VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &family, &len) < 0 ? -errno : family;
}
// Sets an option by its IPv6 name on an IPv6 socket, else by its IPv4 name. An IPv6 socket that
// also receives from IPv4 addresses has both, the second one as far as the kernel knows it.
static int volt__set_ip_option(int fd, int family, int v6_name, int v4_name, int value) {
    if (family < 0) return family;
    if (family != AF_INET6) return volt__set_int_option(fd, IPPROTO_IP, v4_name, value);
    (void)volt__set_int_option(fd, IPPROTO_IP, v4_name, value);
    return volt__set_int_option(fd, IPPROTO_IPV6, v6_name, value);
}
static int volt__udp_set_info(int fd, int family) {
    int rc = volt__set_ip_option(fd, family, IPV6_RECVPKTINFO, IP_PKTINFO, 1);
    if (rc == 0) rc = volt__set_ip_option(fd, family, IPV6_RECVTCLASS, IP_RECVTOS, 1);
    return rc < 0 ? rc : volt__set_ip_option(fd, family, IPV6_RECVHOPLIMIT, IP_RECVTTL, 1);
}
static int volt__udp_set_options(int fd, int family, const volt_udp_options *o) {
    int rc = 0;
    if (family == AF_INET6)
        rc = volt__set_int_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, o->is_v6only != 0);
    if (rc == 0 && o->is_reuseport) rc = volt__set_int_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (rc == 0 && o->is_reuseaddr) rc = volt__set_int_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (rc == 0 && o->is_broadcast) rc = volt__set_int_option(fd, SOL_SOCKET, SO_BROADCAST, 1);
    if (rc == 0 && o->has_info) rc = volt__udp_set_info(fd, family);
    if (rc == 0) rc = volt_set_buffers(fd, o->send_bytes, o->receive_bytes);
    if (rc == 0 && o->device &&
        VOLT_SYS(setsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, o->device,
                 (socklen_t)strlen(o->device) + 1) < 0)
        rc = -errno;
    // without it each datagram is received alone
    if (rc == 0 && o->is_joined) (void)volt__set_int_option(fd, IPPROTO_UDP, VOLT__UDP_GRO, 1);
    return rc;
}
static int volt__udp_open(const volt_addr *a, const volt_udp_options *o) {
    int family = volt_addr_family(a), fd = volt_sock_open(family, SOCK_DGRAM, 0);
    if (fd < 0) return fd;
    int rc = volt__udp_set_options(fd, family, o);
    if (rc == 0) rc = volt_sock_bind(fd, a);
    if (rc == 0) return fd;
    VOLT_SYS(close, fd);
    return rc;
}
VOLT_API int volt_udp_open(const volt_addr *a_or_null, const volt_udp_options *options_or_null) {
    volt_udp_options options;
    volt_addr any;
    memset(&options, 0, sizeof options);
    if (options_or_null) options = *options_or_null;
    if (a_or_null) {
        int family = volt_addr_family(a_or_null);
        return volt__is_ip(family) ? volt__udp_open(a_or_null, &options) : -EAFNOSUPPORT;
    }
    volt__addr_ip(&any, "::", 0);
    int fd = volt__udp_open(&any, &options);
    if (fd != -EAFNOSUPPORT || options.is_v6only) return fd;
    volt__addr_ip(&any, "0.0.0.0", 0); // the kernel has no IPv6
    return volt__udp_open(&any, &options);
}
static int volt__mcast(int fd, const volt_addr *group, unsigned if_index, const volt_addr *source,
                       int name, int source_name) {
    int family = volt_addr_family(group), level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    struct group_source_req with_source;
    struct group_req all;
    if (!volt__is_ip(family)) return -EAFNOSUPPORT;
    memset(&with_source, 0, sizeof with_source);
    memset(&all, 0, sizeof all);
    with_source.gsr_interface = all.gr_interface = if_index;
    memcpy(&with_source.gsr_group, group->sa_, group->len_);
    memcpy(&all.gr_group, group->sa_, group->len_);
    if (!source)
        return VOLT_SYS(setsockopt, fd, level, name, &all, sizeof all) < 0 ? -errno : 0;
    memcpy(&with_source.gsr_source, source->sa_, source->len_);
    return VOLT_SYS(setsockopt, fd, level, source_name, &with_source, sizeof with_source) < 0
               ? -errno
               : 0;
}
VOLT_API int volt_mcast_join(int fd, const volt_addr *group, unsigned if_index,
                             const volt_addr *source_or_null) {
    return volt__mcast(fd, group, if_index, source_or_null, MCAST_JOIN_GROUP,
                       MCAST_JOIN_SOURCE_GROUP);
}
VOLT_API int volt_mcast_leave(int fd, const volt_addr *group, unsigned if_index,
                              const volt_addr *source_or_null) {
    return volt__mcast(fd, group, if_index, source_or_null, MCAST_LEAVE_GROUP,
                       MCAST_LEAVE_SOURCE_GROUP);
}
VOLT_API int volt_set_mcast(int fd, unsigned if_index, int hops, int is_looped) {
    int family = volt__sock_family(fd), rc = 0;
    struct ip_mreqn on;
    memset(&on, 0, sizeof on);
    on.imr_ifindex = (int)if_index;
    // of both on an IPv6 socket: it may send to IPv4 addresses
    if (VOLT_SYS(setsockopt, fd, IPPROTO_IP, IP_MULTICAST_IF, &on, sizeof on) < 0) rc = -errno;
    if (family == AF_INET6)
        rc = volt__set_int_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)if_index);
    if (rc == 0)
        rc = volt__set_ip_option(fd, family, IPV6_MULTICAST_HOPS, IP_MULTICAST_TTL, hops);
    return rc < 0 ? rc : volt__set_ip_option(fd, family, IPV6_MULTICAST_LOOP, IP_MULTICAST_LOOP,
                                             is_looped != 0);
}
VOLT_API int volt_set_ttl(int fd, int hops) {
    return volt__set_ip_option(fd, volt__sock_family(fd), IPV6_UNICAST_HOPS, IP_TTL, hops);
}
VOLT_API int volt_set_tos(int fd, int tos) {
    return volt__set_ip_option(fd, volt__sock_family(fd), IPV6_TCLASS, IP_TOS, tos);
}

// ---- control data

static void volt__msg_info_local(volt_msg_info *out, int family, const void *address,
                                 unsigned if_index) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memset(&v4, 0, sizeof v4);
    memset(&v6, 0, sizeof v6);
    out->if_index = if_index;
    out->has |= VOLT_MSG_INTERFACE;
    if (family == AF_INET) {
        v4.sin_family = AF_INET;
        memcpy(&v4.sin_addr, address, sizeof v4.sin_addr);
        volt__addr_set(&out->local, &v4, sizeof v4);
    } else {
        v6.sin6_family = AF_INET6;
        memcpy(&v6.sin6_addr, address, sizeof v6.sin6_addr);
        if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) v6.sin6_scope_id = if_index;
        volt__addr_set(&out->local, &v6, sizeof v6);
        if (IN6_IS_ADDR_MULTICAST(&v6.sin6_addr)) return; // not an address to answer from
    }
    out->has |= VOLT_MSG_LOCAL;
}
// The kernel gives TOS as one byte, the others as an int.
static int volt__message_int(const struct cmsghdr *c) {
    int value = 0;
    size_t len = c->cmsg_len - CMSG_LEN(0);
    if (len < sizeof value) return *CMSG_DATA(c);
    memcpy(&value, CMSG_DATA(c), sizeof value);
    return value;
}
// Returns the size that a whole item has at least.
static size_t volt__msg_info_size(int level, int type) {
    if (level == IPPROTO_IP && type == IP_PKTINFO) return sizeof(struct in_pktinfo);
    if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) return sizeof(struct in6_pktinfo);
    return level == IPPROTO_IP && type == IP_TOS ? 1 : sizeof(int);
}
static void volt__msg_info_add(volt_msg_info *out, const struct cmsghdr *c) {
    struct in_pktinfo v4;
    struct in6_pktinfo v6;
    int level = c->cmsg_level, type = c->cmsg_type;
    // the kernel cuts the last item where the room ends
    if (c->cmsg_len < CMSG_LEN(volt__msg_info_size(level, type))) return;
    if (level == IPPROTO_IP && type == IP_PKTINFO) {
        memcpy(&v4, CMSG_DATA(c), sizeof v4);
        volt__msg_info_local(out, AF_INET, &v4.ipi_spec_dst, (unsigned)v4.ipi_ifindex);
    } else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
        memcpy(&v6, CMSG_DATA(c), sizeof v6);
        volt__msg_info_local(out, AF_INET6, &v6.ipi6_addr, (unsigned)v6.ipi6_ifindex);
    } else if ((level == IPPROTO_IP && type == IP_TOS) ||
               (level == IPPROTO_IPV6 && type == IPV6_TCLASS)) {
        out->tos = volt__message_int(c);
        out->has |= VOLT_MSG_TOS;
    } else if ((level == IPPROTO_IP && type == IP_TTL) ||
               (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT)) {
        out->ttl = volt__message_int(c);
        out->has |= VOLT_MSG_TTL;
    } else if (level == IPPROTO_UDP && type == VOLT__UDP_GRO) {
        out->segment = (unsigned)volt__message_int(c);
        out->has |= VOLT_MSG_SEGMENT;
    }
}
VOLT_API void volt_msg_info_get(const struct msghdr *m, volt_msg_info *out) {
    memset(out, 0, sizeof *out);
    if (m->msg_flags & MSG_CTRUNC) out->has |= VOLT_MSG_INFO_IS_CUT;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = volt__message_next(m, c))
        volt__msg_info_add(out, c);
}
VOLT_API void volt_msg_info_reply(const volt_msg_info *received, volt_msg_info *out) {
    memset(out, 0, sizeof *out);
    out->has = received->has & VOLT_MSG_LOCAL;
    out->local = received->local;
    if (!(received->has & VOLT_MSG_INTERFACE) || volt__addr_scope_of(&received->local) == 0) return;
    out->has |= VOLT_MSG_INTERFACE;
    out->if_index = received->if_index;
}
// The address and the interface are one item of control data.
static int volt__msg_info_put_local(struct msghdr *m, size_t room, const volt_msg_info *info) {
    struct in_pktinfo v4;
    struct in6_pktinfo v6;
    int has_local = (info->has & VOLT_MSG_LOCAL) != 0;
    unsigned if_index = info->has & VOLT_MSG_INTERFACE ? info->if_index : 0;
    int family = has_local ? volt_addr_family(&info->local) : AF_UNSPEC, rc = 0;
    if (has_local && !volt__is_ip(family)) return -EINVAL;
    memset(&v4, 0, sizeof v4);
    memset(&v6, 0, sizeof v6);
    v4.ipi_ifindex = (int)if_index;
    v6.ipi6_ifindex = if_index;
    if (family == AF_INET)
        memcpy(&v4.ipi_spec_dst, info->local.sa_ + offsetof(struct sockaddr_in, sin_addr), 4);
    if (family == AF_INET6)
        memcpy(&v6.ipi6_addr, info->local.sa_ + offsetof(struct sockaddr_in6, sin6_addr), 16);
    // both, if the family is not known: the kernel skips that of the other one
    if (family != AF_INET)
        rc = volt__message_control(m, room, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof v6);
    if (rc == 0 && family != AF_INET6)
        rc = volt__message_control(m, room, IPPROTO_IP, IP_PKTINFO, &v4, sizeof v4);
    return rc;
}
static int volt__message_control_both(struct msghdr *m, size_t room, int v6_type, int v4_type,
                                      int value) {
    int rc = volt__message_control(m, room, IPPROTO_IPV6, v6_type, &value, sizeof value);
    if (rc < 0) return rc;
    return volt__message_control(m, room, IPPROTO_IP, v4_type, &value, sizeof value);
}
VOLT_API int volt_msg_info_put(struct msghdr *m, volt_msg_control *room,
                               const volt_msg_info *info) {
    uint16_t segment = (uint16_t)info->segment;
    size_t n = sizeof room->bytes;
    int rc = 0;
    m->msg_control = room->bytes;
    m->msg_controllen = 0;
    if (info->has & (VOLT_MSG_LOCAL | VOLT_MSG_INTERFACE))
        rc = volt__msg_info_put_local(m, n, info);
    if (rc == 0 && info->has & VOLT_MSG_TOS)
        rc = volt__message_control_both(m, n, IPV6_TCLASS, IP_TOS, info->tos);
    if (rc == 0 && info->has & VOLT_MSG_TTL)
        rc = volt__message_control_both(m, n, IPV6_HOPLIMIT, IP_TTL, info->ttl);
    if (rc == 0 && info->has & VOLT_MSG_SEGMENT)
        rc = volt__message_control(m, n, IPPROTO_UDP, VOLT__UDP_SEGMENT, &segment,
                                   sizeof segment);
    VOLT_ASSERT(rc != -ENOSPC);
    if (m->msg_controllen == 0) m->msg_control = NULL;
    return rc;
}

// ---- many datagrams by one call

enum { VOLT__SEGMENTS_MAX = 64, VOLT__SEGMENTS_BYTES = 65000, VOLT__SEGMENTS_ONCE = 16 };
typedef struct volt__message_segments {
    volt__message message; // the address, if there is one
    volt_msg_info info;
    char *buf;
    size_t len, size;
} volt__message_segments;
// A kernel without UDP_SEGMENT (before Linux 4.18), and a socket that is not of UDP, ignore this
// control data, and would send all as one datagram. So the option is read first.
static int volt__message_knows_segments(int fd) {
    int size = 0;
    socklen_t len = sizeof size;
    return VOLT_SYS(getsockopt, fd, IPPROTO_UDP, VOLT__UDP_SEGMENT, &size, &len) == 0;
}
// Sends up to 64 datagrams from `at` on as one. Returns the number of bytes or -errno.
static int64_t volt__send_joined(int fd, volt__message_segments *s, size_t at) {
    char room[CMSG_SPACE(sizeof(uint16_t))] __attribute__((aligned(16)));
    struct msghdr *head = &s->message.head;
    uint16_t size = (uint16_t)s->size;
    size_t most = VOLT__SEGMENTS_BYTES / s->size;
    if (most > VOLT__SEGMENTS_MAX) most = VOLT__SEGMENTS_MAX;
    s->message.part.iov_base = s->buf + at;
    s->message.part.iov_len = s->len - at < most * s->size ? s->len - at : most * s->size;
    head->msg_control = room;
    head->msg_controllen = 0;
    (void)volt__message_control(head, sizeof room, IPPROTO_UDP, VOLT__UDP_SEGMENT, &size,
                                sizeof size);
    int64_t rc = volt__sendmsg_once(fd, head, 0);
    head->msg_control = NULL;
    head->msg_controllen = 0;
    return rc;
}
// The same by a call for several messages.
static int64_t volt__send_apart(int fd, volt__message_segments *s, size_t at) {
    struct mmsghdr v[VOLT__SEGMENTS_ONCE];
    struct iovec part[VOLT__SEGMENTS_ONCE];
    volt__messages all = { v, NULL, 0, 0 };
    size_t from = at;
    for (; all.n < VOLT__SEGMENTS_ONCE && from < s->len; all.n++, from += s->size) {
        part[all.n].iov_base = s->buf + from;
        part[all.n].iov_len = s->len - from < s->size ? s->len - from : s->size;
        v[all.n].msg_hdr = s->message.head;
        v[all.n].msg_hdr.msg_iov = &part[all.n];
    }
    int64_t n = volt__sendmmsg_call(fd, &all);
    if (n < 0) return n;
    size_t end = at + (size_t)n * s->size;
    return (int64_t)((end < s->len ? end : s->len) - at);
}
// Errors for which datagrams are sent one by one: the kernel does not know UDP_SEGMENT, the device
// computes no checksums, or the segment is longer than the route takes without fragments.
static int volt__is_not_joined(int64_t rc) {
    return rc == -EINVAL || rc == -EIO || rc == -EOPNOTSUPP || rc == -ENOPROTOOPT ||
           rc == -EMSGSIZE;
}
static int64_t volt__send_segments_call(int fd, void *arg) {
    volt__message_segments *s = (volt__message_segments *)arg;
    size_t at = 0;
    int is_apart = s->size > VOLT__SEGMENTS_BYTES / 2 || s->len <= s->size;
    if (!is_apart) is_apart = !volt__message_knows_segments(fd);
    while (at < s->len) {
        int64_t rc = is_apart ? volt__send_apart(fd, s, at) : volt__send_joined(fd, s, at);
        if (!is_apart && volt__is_not_joined(rc)) {
            is_apart = 1;
            continue;
        }
        if (rc < 0) return at > 0 ? (int64_t)at : rc;
        at += (size_t)rc;
    }
    return (int64_t)at;
}
VOLT_API volt_poll volt_send_segments(volt_cx *cx, int fd, const void *buf, size_t len,
                                      size_t segment, const volt_addr *to_or_null) {
    volt__message_segments s;
    volt__check_not_on_stack(cx, buf);
    if (segment == 0) return volt_ready(-EINVAL);
    if (segment > 65535) return volt_ready(-EMSGSIZE);
    if (len == 0) return volt_sendto(cx, fd, buf, 0, 0, to_or_null);
    volt__message_init(&s.message, buf, len, 0);
    if (to_or_null) volt__message_to(&s.message, to_or_null);
    s.buf = (char *)(uintptr_t)buf; // only read
    s.len = len;
    s.size = segment;
    return volt__message_poll(cx, fd, VOLT__WR, volt__send_segments_call, &s);
}
static int64_t volt__recv_segments_call(int fd, void *arg) {
    volt__message_segments *s = (volt__message_segments *)arg;
    volt_msg_control room;
    s->message.head.msg_control = room.bytes;
    s->message.head.msg_controllen = sizeof room.bytes;
    int64_t rc = volt__recv_call(fd, &s->message);
    if (rc < 0) return rc;
    volt_msg_info_get(&s->message.head, &s->info);
    s->size = s->info.has & VOLT_MSG_SEGMENT ? s->info.segment : (size_t)rc;
    if (s->size == 0) s->size = 1; // an empty datagram; a loop by this size must end
    return rc;
}
VOLT_API volt_poll volt_recv_segments(volt_cx *cx, int fd, void *buf, size_t len, size_t *segment,
                                      volt_addr *from_or_null, volt_msg_info *info_or_null) {
    volt__message_segments s;
    volt__check_not_on_stack(cx, buf);
    memset(&s.info, 0, sizeof s.info);
    volt__message_init(&s.message, buf, len, 0);
    s.message.from = from_or_null;
    s.size = 1;
    volt_poll p = volt__message_poll(cx, fd, VOLT__RD, volt__recv_segments_call, &s);
    if (volt_is_pending(p)) return p;
    *segment = s.size;
    if (info_or_null) *info_or_null = s.info;
    return p;
}
#endif // VOLT_NO_UDP
#endif // VOLT_NO_IO

//==================================================================================================
// >>unix  unix sockets, pipes, terminals
//==================================================================================================
// Operations that only unix sockets have, and descriptors that are no sockets.
//   - Descriptors that were received and cannot be given to the caller are closed before the call
//     returns, so that a peer cannot fill the table of this process.
//   - No function here waits, except volt_send_fds and volt_recv_fds, which are called in a poll.
// Any thread may call the others.
#ifndef VOLT_NO_UNIX
enum { VOLT__FDS_MAX = 253 }; // the most that the kernel passes by one message

VOLT_API int volt_unix_open(const volt_addr *a_or_null,
                            const volt_listen_options *options_or_null) {
    volt_listen_options o;
    memset(&o, 0, sizeof o);
    if (options_or_null) o = *options_or_null;
    if (a_or_null && volt_addr_family(a_or_null) != AF_UNIX) return -EAFNOSUPPORT;
    int fd = volt_sock_open(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0 || !a_or_null) return fd;
    int rc = volt__path_bind(fd, a_or_null, SOCK_DGRAM, &o);
    if (rc == 0) return fd;
    VOLT_SYS(close, fd);
    return rc;
}
VOLT_API int volt_unix_unlink(int fd) {
    volt_addr a;
    struct stat st;
    int rc = volt_local_addr(fd, &a);
    if (rc < 0 || !volt__addr_path(&a)) return rc;
    if (VOLT_SYS(stat, volt__addr_path(&a), &st) < 0) return -errno;
    if (!S_ISSOCK(st.st_mode)) return -ENOENT;
    return VOLT_SYS(unlink, volt__addr_path(&a)) < 0 ? -errno : 0;
}
VOLT_API int volt_socketpair(int type, int fd[2]) {
    int flags = type | SOCK_NONBLOCK | SOCK_CLOEXEC;
    return VOLT_SYS(socketpair, AF_UNIX, flags, 0, fd) < 0 ? -errno : 0;
}
VOLT_API int volt_pipe(int fd[2]) {
    return VOLT_SYS(pipe2, fd, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
}

// ---- descriptors through a socket

typedef struct volt__fds_message {
    volt__message message;
    int *fds;
    unsigned n; // to be sent, or the room
    volt_fds_info info;
    union {
        char room[CMSG_SPACE(VOLT__FDS_MAX * sizeof(int))];
        size_t align_;
    } control;
} volt__fds_message;
static int64_t volt__send_fds_call(int fd, void *arg) {
    volt__fds_message *m = (volt__fds_message *)arg;
    struct msghdr *head = &m->message.head;
    head->msg_control = m->n > 0 ? m->control.room : NULL;
    head->msg_controllen = 0;
    if (m->n > 0)
        (void)volt__message_control(head, sizeof m->control, SOL_SOCKET, SCM_RIGHTS, m->fds,
                             m->n * sizeof(int));
    return volt__sendmsg_once(fd, head, m->message.flags);
}
VOLT_API volt_poll volt_send_fds(volt_cx *cx, int fd, const void *buf, size_t len, const int *fds,
                                 unsigned n) {
    volt__fds_message m;
    volt__check_not_on_stack(cx, buf);
    if (len == 0 || n > VOLT__FDS_MAX) return volt_ready(-EINVAL);
    volt__message_init(&m.message, buf, len, 0);
    m.fds = (int *)(uintptr_t)fds; // only read
    m.n = n;
    return volt__message_poll(cx, fd, VOLT__WR, volt__send_fds_call, &m);
}
// Hands over the descriptors of one item, and closes those for which there is no room.
static void volt__take_fds(volt__fds_message *m, const struct cmsghdr *c) {
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (m->info.n < m->n) {
            m->fds[m->info.n++] = fd;
        } else {
            VOLT_SYS(close, fd);
            m->info.is_surplus = 1;
        }
    }
}
static int64_t volt__recv_fds_call(int fd, void *arg) {
    volt__fds_message *m = (volt__fds_message *)arg;
    struct msghdr *head = &m->message.head;
    head->msg_control = m->control.room;
    head->msg_controllen = sizeof m->control;
    int64_t rc = volt__recvmsg_once(fd, head, MSG_CMSG_CLOEXEC);
    if (rc < 0) return rc;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = volt__message_next(head, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) volt__take_fds(m, c);
    if (head->msg_flags & MSG_CTRUNC) m->info.is_surplus = 1; // the kernel has closed some
    m->info.is_cut = (head->msg_flags & MSG_TRUNC) != 0;
    return rc;
}
VOLT_API volt_poll volt_recv_fds(volt_cx *cx, int fd, void *buf, size_t len, int *fds, unsigned cap,
                                 volt_fds_info *out) {
    volt__fds_message m;
    volt__check_not_on_stack(cx, buf);
    memset(&m.info, 0, sizeof m.info);
    volt__message_init(&m.message, buf, len, 0);
    m.fds = fds;
    m.n = cap;
    volt_poll p = volt__message_poll(cx, fd, VOLT__RD, volt__recv_fds_call, &m);
    if (!volt_is_pending(p)) *out = m.info;
    return p;
}
VOLT_API int volt_peer_cred(int fd, volt_cred *out) {
    struct ucred cred;
    socklen_t len = sizeof cred;
    memset(out, 0, sizeof *out);
    if (VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) return -errno;
    out->pid = cred.pid;
    out->uid = cred.uid;
    out->gid = cred.gid;
    return 0;
}
enum { VOLT__SO_PEERPIDFD = 77 }; // not in every C library's headers
VOLT_API int volt_peer_pidfd(int fd) {
    int pidfd = -1;
    socklen_t len = sizeof pidfd;
    if (VOLT_SYS(getsockopt, fd, SOL_SOCKET, VOLT__SO_PEERPIDFD, &pidfd, &len) < 0) return -errno;
    return pidfd;
}

// ---- terminals

VOLT__SASSERT(sizeof(struct termios) <= sizeof(((volt_tty *)0)->state_), "room for its state");
static void volt__serial_raw(struct termios *t) {
    t->c_iflag &= ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    t->c_oflag &= ~(tcflag_t)OPOST;
    t->c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    t->c_cflag &= ~(tcflag_t)(CSIZE | PARENB);
    t->c_cflag |= CS8;
    t->c_cc[VMIN] = 1;
    t->c_cc[VTIME] = 0;
}
// From here on volt_tty_restore puts the state back. Returns 0 or -errno.
static int volt__tty_save(volt_tty *t, int fd, int is_exclusive) {
    struct termios now;
    volt__store_rlx(&t->is_raw_, 0); // rlx: nothing is saved
    if (VOLT_SYS(tcgetattr, fd, &now) < 0) return -errno;
    memcpy(t->state_, &now, sizeof now);
    t->fd_ = fd;
    t->is_exclusive_ = is_exclusive;
    volt__store_rel(&t->is_raw_, 1); // [Y1] with restore, which a signal handler may call
    return 0;
}
// `when` is TCSANOW, or TCSAFLUSH to wait for the output that is pending. Returns 0 or -errno.
static int volt__tty_set(int fd, int when, const struct termios *t) {
    while (VOLT_SYS(tcsetattr, fd, when, t) < 0)
        if (errno != EINTR) return -errno;
    return 0;
}
VOLT_API int volt_tty_raw(volt_tty *t, int fd) {
    struct termios raw;
    int rc = volt__tty_save(t, fd, 0);
    if (rc < 0) return rc;
    memcpy(&raw, t->state_, sizeof raw);
    volt__serial_raw(&raw);
    rc = volt__tty_set(fd, TCSAFLUSH, &raw);
    if (rc < 0) volt_tty_restore(t);
    return rc;
}
VOLT_API void volt_tty_restore(volt_tty *t) {
    struct termios before;
    int raw = 1, error = errno;
    if (!volt__cas_acq_rel(&t->is_raw_, &raw, 0)) return; // [Y1] with raw; else: done already
    memcpy(&before, t->state_, sizeof before);
    (void)volt__tty_set(t->fd_, TCSAFLUSH, &before);
    if (t->is_exclusive_) VOLT_SYS(ioctl, t->fd_, TIOCNXCL);
    errno = error;
}

// ---- serial lines

// Returns the speed's constant, or B0 if there is none.
static speed_t volt__serial_speed(unsigned baud) {
    static const struct {
        unsigned baud;
        speed_t speed;
    } speeds[] = {
        { 50, B50 }, { 75, B75 }, { 110, B110 }, { 134, B134 }, { 150, B150 }, { 200, B200 },
        { 300, B300 }, { 600, B600 }, { 1200, B1200 }, { 1800, B1800 }, { 2400, B2400 },
        { 4800, B4800 }, { 9600, B9600 }, { 19200, B19200 }, { 38400, B38400 }, { 57600, B57600 },
        { 115200, B115200 }, { 230400, B230400 }, { 460800, B460800 }, { 500000, B500000 },
        { 576000, B576000 }, { 921600, B921600 }, { 1000000, B1000000 }, { 1152000, B1152000 },
        { 1500000, B1500000 }, { 2000000, B2000000 }, { 2500000, B2500000 }, { 3000000, B3000000 },
        { 3500000, B3500000 }, { 4000000, B4000000 }
    };
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (speeds[i].baud == baud) return speeds[i].speed;
    return B0;
}
// Fills in what the options ask for. Returns 0 or -EINVAL.
static int volt__serial_format(struct termios *t, const volt_serial_options *o) {
    static const tcflag_t sizes[] = { CS5, CS6, CS7, CS8 };
    unsigned data_bits = o->data_bits ? o->data_bits : 8;
    unsigned stop_bits = o->stop_bits ? o->stop_bits : 1;
    char parity = (char)(o->parity ? o->parity : 'N');
    speed_t speed = volt__serial_speed(o->baud ? o->baud : 9600);
    if (speed == B0 || data_bits < 5 || data_bits > 8 || stop_bits > 2) return -EINVAL;
    if (parity != 'N' && parity != 'E' && parity != 'O') return -EINVAL;
    volt__serial_raw(t);
    t->c_iflag &= ~(tcflag_t)(IXOFF | IXANY | INPCK);
    t->c_cflag &= ~(tcflag_t)(CSIZE | CSTOPB | PARENB | PARODD | CRTSCTS);
    t->c_cflag |= CREAD | CLOCAL | sizes[data_bits - 5];
    if (stop_bits == 2) t->c_cflag |= CSTOPB;
    if (parity != 'N') t->c_cflag |= PARENB;
    if (parity != 'N') t->c_iflag |= INPCK;
    if (parity == 'O') t->c_cflag |= PARODD;
    if (o->has_rtscts) t->c_cflag |= CRTSCTS;
    if (o->has_xonxoff) t->c_iflag |= IXON | IXOFF;
    if (VOLT_SYS(cfsetispeed, t, speed) < 0 || VOLT_SYS(cfsetospeed, t, speed) < 0) return -errno;
    return 0;
}
// tcsetattr succeeds if it could set any one of the values, so they are read back. A pseudo-
// terminal keeps any speed, and ignores the bits of a frame.
static int volt__serial_set(int fd, const volt_serial_options *o) {
    struct termios t, got;
    if (VOLT_SYS(tcgetattr, fd, &t) < 0) return -errno;
    int rc = volt__serial_format(&t, o);
    if (rc < 0) return rc;
    rc = volt__tty_set(fd, TCSANOW, &t);
    if (rc < 0) return rc;
    if (VOLT_SYS(tcgetattr, fd, &got) < 0) return -errno;
    tcflag_t checked = CSTOPB | PARODD | CRTSCTS;
    if (VOLT_SYS(cfgetospeed, &got) != VOLT_SYS(cfgetospeed, &t)) return -EINVAL;
    return (got.c_cflag & checked) == (t.c_cflag & checked) ? 0 : -EINVAL;
}
// flock keeps out programs that follow the same custom, TIOCEXCL any other but root's. The latter
// lasts until TIOCNXCL, while another process has the line open.
static int volt__serial_lock(int fd) {
    if (VOLT_SYS(flock, fd, LOCK_EX | LOCK_NB) < 0) return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return VOLT_SYS(ioctl, fd, TIOCEXCL) < 0 ? -errno : 0;
}
static int volt__serial_set_up(int fd, const volt_serial_options *o, volt_tty *saved_or_null) {
    int rc = saved_or_null ? volt__tty_save(saved_or_null, fd, o->is_exclusive != 0) : 0;
    if (rc == 0) {
        rc = volt__serial_set(fd, o);
        if (rc < 0 && saved_or_null) volt_tty_restore(saved_or_null);
    }
    if (rc < 0 && o->is_exclusive) VOLT_SYS(ioctl, fd, TIOCNXCL);
    return rc;
}
VOLT_API int volt_serial_open(const char *path, const volt_serial_options *options_or_null,
                              volt_tty *saved_or_null) {
    volt_serial_options o;
    memset(&o, 0, sizeof o);
    if (options_or_null) o = *options_or_null;
    if (saved_or_null) memset(saved_or_null, 0, sizeof *saved_or_null);
    // O_NONBLOCK: without it, open would wait for the carrier of a modem
    int fd = VOLT_SYS(open, path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -errno;
    int rc = o.is_exclusive ? volt__serial_lock(fd) : 0;
    if (rc == 0) rc = volt__serial_set_up(fd, &o, saved_or_null);
    if (rc == 0) return fd;
    VOLT_SYS(close, fd);
    return rc;
}
#endif // VOLT_NO_UNIX

//==================================================================================================
// >>net  accept, connect, closing, readiness, poll sets
//==================================================================================================
// Accept, connect, closing, and waits for readiness, built on >>fds and on the steps of >>io.
//   - A descriptor is closed by the thread that drops the last pin; its waiters get -EBADF.
//   - A socket whose connect fails or is cancelled is closed before the result is returned.
//   - Between polls, key_ of the node holds:
//       accept    the number of errors in a row that may be the listener's
//       back-off  the tick of its timer
//       connect   the socket + 1, or 0 if there is none
// Functions with a volt_cx are called in a poll. Any thread may call volt_rt_close and volt__close,
// volt_pollset_open and volt_pollset_set; volt_pollset_wait_sync is for threads that run no worker.
#ifndef VOLT_NO_IO
// ---- accept
// While the process or the system is out of descriptors or memory, accept waits on a timer (a
// back-off) before each attempt, because no event of the socket reports the end of the shortage.
// The states of a back-off are listed in >>fds.

static int volt__is_shortage(int64_t rc) {
    return rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM;
}
// Returns 1 if the error is that of a connection, which is skipped, and not that of the listener.
// EOPNOTSUPP, ETIMEDOUT and EPERM may be the listener's, too: if the socket cannot listen, or a
// filter refuses every call. So these are skipped at most VOLT__ACCEPT_ERRORS_MAX times in a row.
enum { VOLT__ACCEPT_ERRORS_MAX = 100 };
static int volt__is_peer_error(volt__node *node, int64_t rc) {
    if (rc == -ECONNABORTED || rc == -EPROTO || rc == -ENETDOWN || rc == -ENOPROTOOPT ||
        rc == -EHOSTDOWN || rc == -ENONET || rc == -EHOSTUNREACH || rc == -ENETUNREACH)
        return 1;
    return (rc == -EOPNOTSUPP || rc == -ETIMEDOUT || rc == -EPERM) &&
           node->key_.n_errors_++ < VOLT__ACCEPT_ERRORS_MAX;
}
// Waits on a timer, for twice the last delay, within 5 to 500 ms, and stores the node in the entry
// of the descriptor. If the node of another accept is stored there already, waits in rd until that
// back-off ends.
static volt_poll volt__accept_back_off(volt_cx *cx, volt__node *node, const volt__io *io) {
    volt__fd *e = volt__fd_lookup_existing(&cx->rt_->fds, io->fd);
    uint32_t ms = volt__load_rlx(&e->backoff_ms) * 2u; // rlx: only a delay
    ms = ms < 5 ? 5 : ms > 500 ? 500 : ms;
    // The timer is armed before the entry has the node: a thread that retires the entry takes the
    // task from the node. The deadline may have passed already, if this thread was preempted.
    if (volt__timer_start(cx, node, volt__time_add(VOLT_NOW_NS(), VOLT_MS(ms))))
        (void)volt__task_wake(cx->task_);
    int rc = volt__fd_back_off(e, io->snapshot.gen, node);
    if (rc == VOLT__FD_AGAIN) {
        volt__fd_set_backoff(e, ms);
        node->kind_ = VOLT__LEAF_BACKOFF;
        return volt__leaf_pending(cx, node, (uint32_t)io->fd);
    }
    volt__timer_end_wait(cx, node);
    node->key_.any_ = 0; // was the tick of the timer
    if (rc < 0) return volt__leaf_ready(node, rc);
    if (volt__fd_wait_behind(e, io->snapshot.gen, node, cx->task_) == VOLT__FD_AGAIN) {
        volt__io_save_gen(node, io);
        (void)volt__task_wake(cx->task_); // the other back-off has just ended, or a close ended it
    }
    return volt__leaf_pending(cx, node, (uint32_t)io->fd);
}
// Called when an accept in a back-off is polled. Returns 0 if the back-off goes on. Returns 1 if it
// is over or cancelled; then *is_closed is 1 if the entry was retired, or if io->fd is not the
// number with which the back-off began, and otherwise *io has the generation of the entry.
static int volt__accept_resume(volt_cx *cx, volt__node *node, volt__io *io, int *is_closed) {
    volt__fd *e = volt__fd_find_back_off(&cx->rt_->fds, node, io->fd);
    volt__chain c;
    if (volt__node_state(node) == VOLT__LINKED && !volt__scope_is_cancelled(cx) && e) return 0;
    volt__timer_end_wait(cx, node);
    volt__chain_init(&c);
    *is_closed = !e || !volt__fd_end_back_off(e, node, &io->snapshot.gen, &c) ||
                 e != volt__fd_lookup(&cx->rt_->fds, io->fd);
    volt__schedule_chain(&c);
    io->has_gen = 1;
    node->kind_ = VOLT__LEAF_RD;
    node->key_.any_ = 0;
    return 1;
}
// A new connection has the flags of its listener, since both are sockets of one kind. If the
// listener was retired meanwhile, its number may have the flags of another file, and the first
// operation on the connection finds out its kind.
static void volt__accept_done(volt_cx *cx, const volt__io *io, int fd) {
    volt__fd *e = volt__fd_lookup_existing(&cx->rt_->fds, io->fd);
    volt__fd_set_backoff(e, 0);
    volt__lock(&e->lock);
    uint8_t flags = e->gen == io->snapshot.gen ? e->flags : 0;
    volt__unlock(&e->lock);
    volt__fd_adopt(cx, fd, flags);
}
static volt_poll volt__accept(volt_cx *cx, int fd, volt_addr *peer_or_null) {
    volt__io io;
    volt_poll out;
    volt__node *node = cx->frame_;
    int is_closed = 0;
    volt__io_init(&io, VOLT__OP_ACCEPT, fd, peer_or_null, 0, 0);
    if (node && node->kind_ == VOLT__LEAF_BACKOFF &&
        !volt__accept_resume(cx, node, &io, &is_closed))
        return volt__budget_charge(cx) ? volt__leaf_pending(cx, node, (uint32_t)fd)
                                       : volt_pending();
    node = volt__leaf(cx, VOLT__LEAF_RD);
    if (is_closed)
        return volt__leaf_ready(node, volt__scope_is_cancelled(cx) ? -ECANCELED : -EBADF);
    if (!volt__io_begin(cx, node, &io, &out)) return out;
    for (;;) {
        int64_t rc = volt__io_step(cx, node, &io);
        if (rc == -EAGAIN) {
            node->key_.n_errors_ = 0;
            return volt__leaf_pending(cx, node, (uint32_t)fd);
        }
        if (volt__is_shortage(rc) && volt__fd_lookup(&cx->rt_->fds, fd)) // else: no entry
            return volt__accept_back_off(cx, node, &io);
        if (volt__is_peer_error(node, rc)) {
            if (volt__budget_charge(cx)) continue;
            volt__io_save_gen(node, &io);
            return volt_pending();
        }
        if (rc >= 0) volt__accept_done(cx, &io, (int)rc);
        return volt__leaf_ready(node, rc);
    }
}

VOLT_API volt_poll volt_accept(volt_cx *cx, int fd) { return volt__accept(cx, fd, NULL); }
VOLT_API volt_poll volt_accept_from(volt_cx *cx, int fd, volt_addr *peer) {
    return volt__accept(cx, fd, peer);
}

// ---- closing

// The thread that drops the last pin performs close(2): this one, or one whose operation is still
// in its system call.
static void volt__close(volt_rt *rt, int fd) {
    volt__fd *e = volt__fd_lookup(&rt->fds, fd);
    if (!e) {
        if (fd >= 0) VOLT_SYS(close, fd);
        return;
    }
    if (volt__fd_pin(e)) volt__fd_begin_close(e);
    volt__fd_unpin_and_close(rt, e, fd);
}
VOLT_API void volt_close(volt_cx *cx, int fd) { volt__close(cx->rt_, fd); }
VOLT_API void volt_rt_close(volt_rt *rt, int fd) {
    // a forked child must not change the epoll instances, which it shares with its parent
    if (volt__is_forked_child(rt)) VOLT_SYS(close, fd);
    else volt__close(rt, fd);
}
// Retires the entry without closing the number. Does not wait for pins.
VOLT_API void volt_fd_release(volt_cx *cx, int fd) {
    volt__chain c;
    volt__chain_init(&c);
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, fd);
    if (!e) return;
    volt__fd_retire(&cx->rt_->fds, e, fd, 0, &c);
    volt__schedule_chain(&c);
}

// ---- connect

// The arguments of a connect. own_fd: the caller's socket, or -1: volt opens one, of stream type.
typedef struct volt__connect_args {
    const volt_addr *to, *from_or_null;
    int own_fd;
} volt__connect_args;

// Ends the await, with a negative `error` or with the result of success: the socket that volt has
// opened, or 0 for one of the caller's. An error closes the socket, unless it is the caller's.
static volt_poll volt__connect_end(volt_cx *cx, volt__node *node, const volt__connect_args *args,
                                   int fd, int64_t error) {
    int is_own = args->own_fd >= 0;
    if (error < 0 && !is_own) volt__close(cx->rt_, fd);
    return volt__leaf_ready(node, error < 0 ? error : is_own ? 0 : fd);
}
// Opens a socket for the connection, bound to args->from_or_null. Returns it or -errno.
static int volt__connect_open(volt_cx *cx, const volt__connect_args *args) {
    int family = volt_addr_family(args->to), fd = volt__socket(family), rc = 0;
    if (fd < 0) return fd;
    unsigned flags = VOLT__FD_PROBED | VOLT__FD_SOCKET | VOLT__FD_NONBLOCK;
    if (volt__is_ip(family)) flags |= VOLT__FD_STREAM;
    volt__fd_adopt(cx, fd, (uint8_t)flags);
    if (family != AF_UNIX) volt_set_nodelay(fd, 1);
    if (args->from_or_null) {
        // the connect chooses the port, and has more to choose from, since it knows the peer
        if (volt_addr_port(args->from_or_null) == 0)
            (void)volt__set_int_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        else rc = volt__set_int_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (rc == 0) rc = volt_sock_bind(fd, args->from_or_null);
    }
    if (rc == 0) return fd;
    volt__close(cx->rt_, fd);
    return rc;
}
// A socket of the caller's may still be in blocking mode. Returns 0 or -errno.
static int volt__connect_probe(volt__fd *e, int fd) {
    int wanted = VOLT__FD_PROBED | VOLT__FD_SOCKET | VOLT__FD_NONBLOCK;
    int rc = volt__fd_probe(e, fd, volt__load_rlx(&e->gen), wanted); // rlx: probe checks it
    return rc < 0 ? rc : 0;
}
static volt_poll volt__connect_done(volt_cx *cx, volt__node *node, const volt__connect_args *args,
                                    int fd) {
    int error = 0;
    socklen_t len = sizeof error;
    if (VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0) error = errno;
    return volt__connect_end(cx, node, args, fd, -error);
}
// Waits until the connection is made or refused. A socket that volt has just opened is not
// registered, so no event can have come yet. One of the caller's may be, so its state is read after
// the snapshot, and again if an event comes between the two.
static volt_poll volt__connect_wait(volt_cx *cx, volt__node *node, const volt__connect_args *args,
                                    volt__fd *e, int fd) {
    int rc, may_be_registered = args->own_fd >= 0;
    do {
        volt__fd_snapshot snapshot = volt__fd_take_snapshot(e);
        if (may_be_registered && volt__is_ready_now(fd, VOLT__WR))
            return volt__connect_done(cx, node, args, fd);
        rc = volt__fd_wait(&cx->rt_->fds, e, fd, cx->worker_->index, VOLT__WR, snapshot, node,
                           cx->task_);
        may_be_registered = 1;
    } while (rc == VOLT__FD_AGAIN && volt__load_rlx(&e->mode) != VOLT__MODE_ALWAYS); // rlx: hint
    if (rc != VOLT__FD_LINKED)
        return volt__connect_end(cx, node, args, fd, rc < 0 ? rc : -EBADF);
    node->key_.socket_ = fd + 1;
    return volt__leaf_pending(cx, node, (uint32_t)fd);
}
static volt_poll volt__connect_start(volt_cx *cx, volt__node *node,
                                     const volt__connect_args *args) {
    int fd = args->own_fd >= 0 ? args->own_fd : volt__connect_open(cx, args);
    if (fd < 0) return volt__leaf_ready(node, fd);
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, fd);
    if (!e) return volt__connect_end(cx, node, args, fd, volt__fd_lookup_error(fd));
    int rc = args->own_fd >= 0 ? volt__connect_probe(e, fd) : 0;
    if (rc < 0) return volt__connect_end(cx, node, args, fd, rc);
    if (VOLT_SYS(connect, fd, volt__addr_sa(args->to), args->to->len_) == 0)
        return volt__connect_end(cx, node, args, fd, 0);
    // after EINTR, too, the kernel goes on to connect
    if (errno != EINPROGRESS && errno != EINTR)
        return volt__connect_end(cx, node, args, fd, -errno);
    return volt__connect_wait(cx, node, args, e, fd);
}
static volt_poll volt__connect(volt_cx *cx, const volt__connect_args *args) {
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_CONNECT);
    if (!node) return volt_pending();
    int fd = (int)(node->key_.socket_ - 1), is_cancelled = volt__scope_is_cancelled(cx);
    if (fd < 0)
        return is_cancelled ? volt__leaf_ready(node, -ECANCELED)
                            : volt__connect_start(cx, node, args);
    if (!is_cancelled && volt__node_state(node) == VOLT__LINKED &&
        !volt__is_last_try(cx, fd, VOLT__WR))
        return volt__leaf_pending(cx, node, (uint32_t)fd);
    uint8_t state = volt__fd_end_wait(node, cx->task_, VOLT__WR);
    if (state == VOLT__CLOSED) // the number may be another file's by now
        return volt__leaf_ready(node, is_cancelled ? -ECANCELED : -EBADF);
    if (is_cancelled) return volt__connect_end(cx, node, args, fd, -ECANCELED);
    return volt__connect_done(cx, node, args, fd);
}
VOLT_API volt_poll volt_connect(volt_cx *cx, const volt_addr *to) {
    volt__connect_args args = { to, NULL, -1 };
    return volt__connect(cx, &args);
}
VOLT_API volt_poll volt_connect_from(volt_cx *cx, const volt_addr *to, const volt_addr *from) {
    volt__connect_args args = { to, from, -1 };
    return volt__connect(cx, &args);
}
VOLT_API volt_poll volt_connect_on(volt_cx *cx, int fd, const volt_addr *to) {
    volt__connect_args args = { to, NULL, fd };
    if (fd < 0) return volt_ready(-EBADF);
    return volt__connect(cx, &args);
}

// ---- readiness

// Waits for a descriptor that is registered edge-triggered, because volt itself reads or writes it.
// The ready bits of its entry may be stale, so poll(2) is asked whether it is ready now. Returns
// VOLT__FD_LINKED, 0 if the descriptor is ready, -EBADF if it was retired since the wait began, or
// another -errno.
static int64_t volt__ready_edge(volt_cx *cx, volt__fd *e, volt__io *io, volt__node *node) {
    int fd = io->fd, dir = io->dir;
    struct pollfd p;
    p.fd = fd;
    p.events = dir == VOLT__RD ? POLLIN | POLLPRI | POLLRDHUP : POLLOUT;
    for (;;) {
        volt__fd_snapshot snapshot = volt__fd_take_snapshot(e);
        if (io->has_gen && snapshot.gen != io->snapshot.gen) return -EBADF;
        p.revents = 0;
        int rc = VOLT_SYS(poll, &p, 1, 0);
        if (rc < 0 && errno == EINTR) continue;
        if (p.revents & POLLNVAL) return -EBADF;
        if (rc != 0) return rc < 0 ? -errno : 0;
        rc = volt__fd_wait(&cx->rt_->fds, e, fd, cx->worker_->index, dir, snapshot, node,
                           cx->task_);
        if (rc == VOLT__FD_REUSED) {
            volt__fd_reset(cx, e, fd);
            io->has_gen = 0;
        } else if (rc != VOLT__FD_AGAIN) {
            return rc;
        }
    }
}
// Returns VOLT__FD_LINKED, 0 if the descriptor is ready, or -errno.
static int64_t volt__ready_step(volt_cx *cx, volt__io *io, volt__node *node) {
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, io->fd);
    if (!e) return volt__fd_lookup_error(io->fd);
    if (volt__load_rlx(&e->mode) == VOLT__MODE_EDGE) // rlx: hint, each wait sets its own mode
        return volt__ready_edge(cx, e, io, node);
    if (volt__is_last_try(cx, io->fd, io->dir)) return 0;
    int rc = volt__fd_wait_foreign(&cx->rt_->fds, e, io->fd, cx->worker_->index, io->dir,
                                   io->has_gen ? &io->snapshot.gen : NULL, node, cx->task_);
    if (rc == 0) volt__fd_fire_if_always(e);
    return rc;
}
static volt_poll volt__ready_poll(volt_cx *cx, int fd, int dir) {
    volt_poll out;
    volt__io io;
    volt__node *node = volt__leaf(cx, dir == VOLT__RD ? VOLT__LEAF_RD : VOLT__LEAF_WR);
    volt__io_init(&io, dir == VOLT__RD ? VOLT__OP_READ : VOLT__OP_WRITE, fd, NULL, 0, 0);
    if (!volt__io_begin(cx, node, &io, &out)) return out;
    if (io.is_ready) return volt__leaf_ready(node, 0); // an event ended the wait
    int64_t rc = volt__ready_step(cx, &io, node);
    return rc == VOLT__FD_LINKED ? volt__leaf_pending(cx, node, (uint32_t)fd)
                                 : volt__leaf_ready(node, rc);
}
VOLT_API volt_poll volt_readable(volt_cx *cx, int fd) { return volt__ready_poll(cx, fd, VOLT__RD); }
VOLT_API volt_poll volt_writable(volt_cx *cx, int fd) { return volt__ready_poll(cx, fd, VOLT__WR); }

// ---- poll sets
// A poll set is an epoll instance of its own. A task waits for it as for a foreign descriptor
// (>>fds), and then fetches its events. epfd_ is its number + 1, or 0 if the set is not open: all
// bits 0 is a closed set. It is an atomic word, since a task that a close wakes reads it once more,
// beside the close. It publishes nothing: the generation of the entry tells a wait that its set was
// closed.

// Returns the descriptor, or -1 if the set is not open.
static int volt__pollset_fd(const volt_pollset *p) {
    return volt__load_rlx(&p->epfd_) - 1; // rlx: publishes nothing
}
VOLT_API int volt_pollset_open(volt_pollset *p) {
    int fd = VOLT_SYS(epoll_create1, EPOLL_CLOEXEC);
    volt__store_rlx(&p->epfd_, fd < 0 ? 0 : fd + 1); // rlx: the caller hands the set over
    return fd < 0 ? -errno : 0;
}
VOLT_API int volt_pollset_set(volt_pollset *p, int fd, uint32_t events) {
    struct epoll_event ev;
    int rc, epfd = volt__pollset_fd(p);
    if (epfd < 0) return -EINVAL;
    memset(&ev, 0, sizeof ev);
    ev.data.fd = fd;
    ev.events = (events & VOLT_IN ? (uint32_t)EPOLLIN : 0) |
                (events & VOLT_OUT ? (uint32_t)EPOLLOUT : 0) |
                (events & VOLT_PRI ? (uint32_t)EPOLLPRI : 0) |
                (events & VOLT_RDHUP ? (uint32_t)EPOLLRDHUP : 0);
    if (events == 0) {
        rc = VOLT_SYS(epoll_ctl, epfd, EPOLL_CTL_DEL, fd, &ev);
        return rc < 0 && errno != ENOENT && errno != EBADF ? -errno : 0;
    }
    do {
        rc = VOLT_SYS(epoll_ctl, epfd, EPOLL_CTL_MOD, fd, &ev);
        if (rc == 0 || errno != ENOENT) break;
        rc = VOLT_SYS(epoll_ctl, epfd, EPOLL_CTL_ADD, fd, &ev);
    } while (rc < 0 && errno == EEXIST); // another thread has added it between the two calls
    return rc < 0 ? -errno : 0;
}
// Waits at most `timeout` ns (< 0: no limit). Returns the number of events, at most 64; 0 if there
// is none or a signal came; or -errno.
static int volt__pollset_poll(int epfd, volt_pollev *out, size_t cap, int64_t timeout) {
    VOLT_ASSERT(epfd >= 0 && cap > 0);
    struct epoll_event ev[64];
    int n = VOLT_EPOLL_WAIT(epfd, ev, cap < 64 ? (int)cap : 64, timeout);
    for (int i = 0; i < n; i++) {
        uint32_t e = ev[i].events;
        out[i].fd = ev[i].data.fd;
        out[i].events = (e & EPOLLIN ? (uint32_t)VOLT_IN : 0) |
                        (e & EPOLLOUT ? (uint32_t)VOLT_OUT : 0) |
                        (e & EPOLLPRI ? (uint32_t)VOLT_PRI : 0) |
                        (e & EPOLLERR ? (uint32_t)VOLT_ERR : 0) |
                        (e & EPOLLHUP ? (uint32_t)VOLT_HUP : 0) |
                        (e & EPOLLRDHUP ? (uint32_t)VOLT_RDHUP : 0);
    }
    return n == -EINTR ? 0 : n;
}
// Fetches events without waiting. Holds a pin, since another task may close the set. Returns the
// number of events, -EBADF if the set was closed since the wait began, or another -errno.
static int volt__pollset_try(volt_cx *cx, volt__io *io, volt_pollev *out, size_t cap) {
    volt__fd *e = volt__fd_lookup(&cx->rt_->fds, io->fd);
    int rc = -EBADF;
    if (!e) return volt__fd_lookup_error(io->fd);
    if (volt__fd_pin(e)) {
        volt__fd_snapshot snapshot = volt__fd_take_snapshot(e);
        if (!io->has_gen || snapshot.gen == io->snapshot.gen)
            rc = volt__pollset_poll(io->fd, out, cap, 0);
        io->snapshot = snapshot;
        io->has_gen = 1;
    }
    volt__fd_unpin_and_close(cx->rt_, e, io->fd);
    return rc;
}
VOLT_API volt_poll volt_pollset_wait(volt_cx *cx, volt_pollset *p, volt_pollev *ev, size_t cap) {
    volt_poll out;
    volt__node *node = volt__leaf(cx, VOLT__LEAF_RD);
    volt__io io;
    int fd = volt__pollset_fd(p);
    volt__check_not_on_stack(cx, ev);
    volt__io_init(&io, VOLT__OP_READ, fd, NULL, 0, 0);
    if (!volt__io_begin(cx, node, &io, &out)) return out;
    if (fd < 0 && io.has_gen) return volt__leaf_ready(node, -EBADF); // closed since the wait began
    if (fd < 0 || cap == 0) return volt__leaf_ready(node, -EINVAL);
    for (;;) {
        int got = volt__pollset_try(cx, &io, ev, cap);
        if (got != 0) return volt__leaf_ready(node, got);
        int64_t rc = volt__ready_step(cx, &io, node);
        if (rc == VOLT__FD_LINKED) return volt__leaf_pending(cx, node, (uint32_t)fd);
        if (rc < 0) return volt__leaf_ready(node, rc);
    }
}
VOLT_API int volt_pollset_wait_sync(volt_pollset *p, volt_pollev *ev, size_t cap,
                                    volt_time at_most) {
    if (VOLT_TLS_GET()) return -EDEADLK;
    int epfd = volt__pollset_fd(p);
    if (epfd < 0 || cap == 0) return -EINVAL;
    volt_time deadline = volt__deadline(at_most);
    for (;;) {
        int64_t left = volt__time_left(deadline);
        int got = volt__pollset_poll(epfd, ev, cap, left);
        if (got != 0) return got;
        if (left == 0) return -ETIMEDOUT; // else a signal came, or the wait ended early: again
    }
}
VOLT_API void volt_pollset_close(volt_cx *cx, volt_pollset *p) {
    int fd = volt__pollset_fd(p);
    if (fd < 0) return;
    // rlx: as above. Before a waiter is woken, whose task may open the set again.
    volt__store_rlx(&p->epfd_, 0);
    volt__close(cx->rt_, fd);
}
#endif

//==================================================================================================
// >>streams  streams, readers, writers
//==================================================================================================
// Readers and writers over any stream. Their functions have no frame: a poll goes by what is in the
// reader or writer, calls an operation of the stream, and stores what that has moved. So an await
// that is cancelled at any point leaves a state from which the next one goes on.
//   - buf_[from_ .. to_) are the bytes of a reader that were not taken, and of a writer those that
//     were not written. scanned_: no delimiter begins before it.
//   - frozen_ is the length that a write in progress was given: its polls pass the same bytes.
//   - is_moving_ and moved_: the progress of a call that fills or empties memory of the caller's.
// All functions are called by one task, those with a volt_cx in its polls.
#ifndef VOLT_NO_STREAM
// A poll that calls operations of a stream one after the other awaits each of them.
static inline void volt__await_next(volt_cx *cx) {
    (void)cx;
    VOLT__DEBUG_DO(cx->is_awaiting_ = 1);
}
static volt_poll volt__fd_stream_read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return volt_read(cx, s.fd, buf, len);
}
static volt_poll volt__fd_stream_write(volt_cx *cx, volt_stream s, const void *buf, size_t len) {
    return volt_write(cx, s.fd, buf, len);
}
static volt_poll volt__fd_stream_end(volt_cx *cx, volt_stream s) {
    (void)cx;
    int rc = volt_sock_shutdown(s.fd, 0, 1);
    return volt_ready(rc == -ENOTSOCK || rc == -EOPNOTSUPP ? 0 : rc);
}
static volt_poll volt__fd_stream_ready(volt_cx *cx, volt_stream s) {
    return volt_read_ready(cx, s.fd);
}
static const volt_stream_ops volt__fd_stream_ops = { volt__fd_stream_read, volt__fd_stream_write,
                                                     volt__fd_stream_end, volt__fd_stream_ready };
VOLT_API volt_stream volt_stream_of(int fd) {
    volt_stream s = { &volt__fd_stream_ops, NULL, fd };
    return s;
}
VOLT_API volt_poll volt_stream_read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return s.ops->read(cx, s, buf, len);
}
VOLT_API volt_poll volt_stream_write(volt_cx *cx, volt_stream s, const void *buf, size_t len) {
    return s.ops->write(cx, s, buf, len);
}
VOLT_API volt_poll volt_stream_end(volt_cx *cx, volt_stream s) {
    return s.ops->end ? s.ops->end(cx, s) : volt_ready(0);
}
VOLT_API volt_poll volt_stream_ready(volt_cx *cx, volt_stream s) {
    return s.ops->ready ? s.ops->ready(cx, s) : volt_ready(-EOPNOTSUPP);
}

// ---- readers

VOLT_API void volt_reader_init(volt_reader *r, volt_stream in, void *buf, size_t cap, int policy) {
    memset(r, 0, sizeof *r);
    r->in_ = in;
    r->buf_ = (char *)buf;
    r->self_ = r;
    r->cap_ = cap;
    r->policy_ = (uint8_t)policy;
}
static void volt__reader_check(volt_cx *cx, const volt_reader *r) {
    (void)cx, (void)r;
    VOLT__EXPECT_CX(cx, r->self_ == r, "the reader was copied: initialise it in its task");
    volt__check_not_on_stack(cx, r->buf_);
}
VOLT_API volt_span volt_buffered(const volt_reader *r) {
    volt_span span = { r->buf_ + r->from_, r->to_ - r->from_ };
    return span;
}
VOLT_API void volt_consume(volt_reader *r, size_t n) {
    VOLT__EXPECT(n <= r->to_ - r->from_, "volt_consume: more than is in the buffer");
    r->from_ += n <= r->to_ - r->from_ ? n : r->to_ - r->from_;
    if (r->scanned_ < r->from_) r->scanned_ = r->from_;
}
// Makes room behind what is there: all of it, if that is needed for `n` bytes or if there is none.
static void volt__reader_compact(volt_reader *r, size_t n) {
    if (r->from_ == r->to_) {
        r->from_ = r->to_ = r->scanned_ = 0;
    } else if (r->from_ > 0 && (r->to_ == r->cap_ || r->cap_ - r->from_ < n)) {
        memmove(r->buf_, r->buf_ + r->from_, r->to_ - r->from_);
        r->to_ -= r->from_;
        r->scanned_ -= r->from_;
        r->from_ = 0;
    }
}
// Reads once more. The buffer has room, or room can be made. Returns 1 if there is more or the end
// was found, 0 if *out is the result of the poll: pending, or an error.
static int volt__reader_more(volt_cx *cx, volt_reader *r, size_t n, volt_poll *out) {
    volt__reader_compact(r, n);
    VOLT_ASSERT(r->to_ < r->cap_ && !r->is_end_);
    volt__await_next(cx);
    *out = r->in_.ops->read(cx, r->in_, r->buf_ + r->to_, r->cap_ - r->to_);
    if (volt_is_pending(*out) || volt_value(*out) < 0) return 0;
    if (volt_value(*out) == 0) r->is_end_ = 1;
    r->to_ += (size_t)volt_value(*out);
    VOLT_ASSERT(r->to_ <= r->cap_);
    return 1;
}
VOLT_API volt_poll volt_fill(volt_cx *cx, volt_reader *r, size_t n, volt_span *out) {
    volt_poll p;
    volt__reader_check(cx, r);
    if (n > r->cap_) return volt_ready(-EMSGSIZE);
    while (r->to_ - r->from_ < n && !r->is_end_)
        if (!volt__reader_more(cx, r, n, &p)) return p;
    *out = volt_buffered(r);
    return volt_ready((int64_t)out->len);
}
VOLT_API volt_poll volt_reader_ready(volt_cx *cx, volt_reader *r) {
    return r->to_ > r->from_ || r->is_end_ ? volt_ready(0) : volt_stream_ready(cx, r->in_);
}
// Takes up to `len` bytes of the buffer.
static size_t volt__reader_take(volt_reader *r, char *buf, size_t len) {
    size_t n = r->to_ - r->from_ < len ? r->to_ - r->from_ : len;
    if (n > 0) memcpy(buf, r->buf_ + r->from_, n);
    volt_consume(r, n);
    return n;
}
VOLT_API volt_poll volt_reader_read(volt_cx *cx, volt_reader *r, void *buf, size_t len) {
    volt_poll p;
    volt__reader_check(cx, r);
    if (r->to_ == r->from_ && len > 0 && !r->is_end_) {
        if (len >= r->cap_) return r->in_.ops->read(cx, r->in_, buf, len); // no need of the buffer
        if (!volt__reader_more(cx, r, 0, &p)) return p;
    }
    return volt_ready((int64_t)volt__reader_take(r, (char *)buf, len));
}
VOLT_API size_t volt_reader_moved(const volt_reader *r) { return r->moved_; }
// Fills `buf` up to `len` bytes or the end of the stream, by way of the buffer. Returns 1 when that
// is done, 0 if *out is the result of the poll. moved_ stays after an error, until the next call.
static int volt__reader_move(volt_cx *cx, volt_reader *r, char *buf, size_t len, volt_poll *out) {
    volt__reader_check(cx, r);
    if (!r->is_moving_) r->moved_ = 0;
    r->is_moving_ = 1;
    for (;;) {
        r->moved_ += volt__reader_take(r, buf + r->moved_, len - r->moved_);
        if (r->moved_ == len || r->is_end_) break;
        if (!volt__reader_more(cx, r, 0, out)) {
            if (!volt_is_pending(*out)) r->is_moving_ = 0;
            return 0;
        }
    }
    r->is_moving_ = 0;
    return 1;
}
VOLT_API volt_poll volt_reader_read_exact(volt_cx *cx, volt_reader *r, void *buf, size_t len) {
    volt_poll p;
    if (!volt__reader_move(cx, r, (char *)buf, len, &p)) return p;
    return volt_ready(r->moved_ == len ? (int64_t)len : -EPIPE);
}
VOLT_API volt_poll volt_read_to_end(volt_cx *cx, volt_reader *r, void *buf, size_t cap) {
    volt_poll p;
    volt_span rest;
    if (!volt__reader_move(cx, r, (char *)buf, cap, &p)) return p;
    if (r->is_end_) return volt_ready(r->to_ > r->from_ ? -EMSGSIZE : (int64_t)r->moved_);
    // full: one more byte, or the end, tells whether there is more
    r->is_moving_ = 1;
    p = volt_fill(cx, r, 1, &rest);
    if (volt_is_pending(p)) return p;
    r->is_moving_ = 0;
    if (volt_value(p) < 0) return p;
    return volt_ready(volt_value(p) > 0 ? -EMSGSIZE : (int64_t)r->moved_);
}

// ---- lines

// Called when the buffer is full without a delimiter. Returns 2 with a piece, or -EMSGSIZE.
static int volt__reader_too_long(volt_reader *r, size_t n, volt_span *out) {
    size_t keep = n - 1; // bytes that may be the beginning of a delimiter
    if (r->policy_ == VOLT_LONG_STOP || r->cap_ < n) return -EMSGSIZE;
    out->data = r->buf_ + r->from_;
    out->len = r->to_ - r->from_ - keep;
    r->from_ = r->scanned_ = r->to_ - keep;
    if (r->policy_ == VOLT_LONG_CUT) return 2;
    r->is_skipping_ = 1;
    return -EMSGSIZE;
}
// Called before a scan: what was scanned for another delimiter does not count.
static void volt__reader_seek(volt_reader *r, const void *delimiter, size_t n) {
    int is_same = n == r->n_sought_ && n <= sizeof r->sought_ &&
                  memcmp(r->sought_, delimiter, n) == 0;
    VOLT_ASSERT(r->scanned_ >= r->from_);
    if (!is_same) r->scanned_ = r->from_;
    r->n_sought_ = n;
    if (n <= sizeof r->sought_) memcpy(r->sought_, delimiter, n);
}
// Returns the position of the next delimiter, or to_ if there is none; then scanned_ is the first
// position at which one may still begin.
static size_t volt__reader_scan(volt_reader *r, const char *delimiter, size_t n) {
    while (r->to_ - r->scanned_ >= n) {
        size_t len = r->to_ - r->scanned_ - n + 1; // positions at which it fits
        const char *at = (const char *)memchr(r->buf_ + r->scanned_, delimiter[0], len);
        if (!at) {
            r->scanned_ += len;
            break;
        }
        r->scanned_ = (size_t)(at - r->buf_);
        if (memcmp(at, delimiter, n) == 0) return r->scanned_;
        r->scanned_++;
    }
    return r->to_;
}
VOLT_API int volt_try_read_until(volt_reader *r, const void *delimiter, size_t n, volt_span *out) {
    if (n == 0) return -EINVAL;
    volt__reader_seek(r, delimiter, n);
    for (;;) {
        size_t at = volt__reader_scan(r, (const char *)delimiter, n);
        int is_found = at < r->to_;
        if (!is_found && !r->is_end_) {
            if (r->is_skipping_) r->from_ = r->scanned_;
            if (r->is_skipping_ || r->to_ - r->from_ < r->cap_) return -EAGAIN;
            return volt__reader_too_long(r, n, out);
        }
        out->data = r->buf_ + r->from_;
        out->len = at - r->from_;
        r->from_ = r->scanned_ = is_found ? at + n : r->to_;
        int was_skipped = r->is_skipping_;
        r->is_skipping_ = 0;
        if (was_skipped) continue; // this was the end of the line that was too long
        if (is_found) return 1;
        return out->len > 0 ? 2 : 0;
    }
}
VOLT_API volt_poll volt_read_until(volt_cx *cx, volt_reader *r, const void *delimiter, size_t n,
                                   volt_span *out) {
    volt_poll p;
    volt__reader_check(cx, r);
    for (;;) {
        int rc = volt_try_read_until(r, delimiter, n, out);
        if (rc != -EAGAIN) return volt_ready(rc);
        if (!volt__reader_more(cx, r, 0, &p)) return p;
    }
}
// Cuts a "\r" that belongs to the end of the line.
static void volt__line_trim(int64_t rc, volt_span *out) {
    if (rc == 1 && out->len > 0 && out->data[out->len - 1] == '\r') out->len--;
}
VOLT_API int volt_try_read_line(volt_reader *r, volt_span *out) {
    int rc = volt_try_read_until(r, "\n", 1, out);
    volt__line_trim(rc, out);
    return rc;
}
VOLT_API volt_poll volt_read_line(volt_cx *cx, volt_reader *r, volt_span *out) {
    volt_poll p = volt_read_until(cx, r, "\n", 1, out);
    if (!volt_is_pending(p)) volt__line_trim(volt_value(p), out);
    return p;
}

// ---- records

static uint64_t volt__record_get(const volt_record_format *f, unsigned width, const char *field) {
    uint64_t x = 0;
    for (unsigned i = 0; i < width; i++)
        x = x << 8 | (unsigned char)field[f->is_little ? width - 1 - i : i];
    return x;
}
static void volt__record_set(const volt_record_format *f, unsigned width, char *field, uint64_t x) {
    for (unsigned i = 0; i < width; i++, x >>= 8)
        field[f->is_little ? i : width - 1 - i] = (char)(x & 0xff);
}
// Fills in the defaults. Returns 0, or -EINVAL if the field is not inside the header.
static int volt__record_form(const volt_record_format *f, unsigned *width, size_t *header) {
    *width = f->width ? f->width : 4;
    *header = f->header ? f->header : (size_t)f->offset + *width;
    return *width <= 8 && (size_t)f->offset + *width <= *header ? 0 : -EINVAL;
}
// Drops the rest of a record that was too long. Returns 1 when that is done.
static int volt__reader_skip(volt_reader *r) {
    size_t n = r->to_ - r->from_;
    if (n > r->skip_) n = (size_t)r->skip_;
    volt_consume(r, n);
    r->skip_ -= n;
    return r->skip_ == 0;
}
VOLT_API int volt_try_read_record(volt_reader *r, const volt_record_format *f, volt_span *out) {
    unsigned width;
    size_t header;
    if (volt__record_form(f, &width, &header) < 0 || header > r->cap_) return -EINVAL;
    if (r->skip_ > 0 && !volt__reader_skip(r)) return r->is_end_ ? -EPIPE : -EAGAIN;
    size_t n = r->to_ - r->from_;
    if (n < header) return !r->is_end_ ? -EAGAIN : n == 0 ? 0 : -EPIPE;
    const char *head = r->buf_ + r->from_;
    uint64_t number = volt__record_get(f, width, head + f->offset);
    // the sum in 64 bits without overflow: a number above INT64_MAX fits into no buffer
    int64_t len = number > INT64_MAX ? INT64_MAX : (int64_t)number;
    if (f->adjust < -len) return -EBADMSG;
    len = f->adjust > INT64_MAX - len ? INT64_MAX : len + f->adjust;
    if ((uint64_t)len > r->cap_ - header || (f->most > 0 && (uint64_t)len > f->most)) {
        if (r->policy_ != VOLT_LONG_SKIP) return -EMSGSIZE;
        r->skip_ = (uint64_t)len + header;
        (void)volt__reader_skip(r);
        return -EMSGSIZE;
    }
    if (n < header + (size_t)len) return r->is_end_ ? -EPIPE : -EAGAIN;
    out->data = r->buf_ + r->from_ + (f->keeps_header ? 0 : header);
    out->len = (size_t)len + (f->keeps_header ? header : 0);
    volt_consume(r, header + (size_t)len);
    return 1;
}
VOLT_API volt_poll volt_read_record(volt_cx *cx, volt_reader *r, const volt_record_format *f,
                                    volt_span *out) {
    volt_poll p;
    volt__reader_check(cx, r);
    for (;;) {
        int rc = volt_try_read_record(r, f, out);
        if (rc != -EAGAIN) return volt_ready(rc);
        if (!volt__reader_more(cx, r, r->cap_, &p)) return p;
    }
}

// ---- a reader as a stream

static volt_poll volt__reader_stream_read(volt_cx *cx, volt_stream s, void *buf, size_t len) {
    return volt_reader_read(cx, (volt_reader *)s.self, buf, len);
}
static volt_poll volt__reader_stream_write(volt_cx *cx, volt_stream s, const void *buf,
                                           size_t len) {
    return volt_stream_write(cx, ((volt_reader *)s.self)->in_, buf, len);
}
static volt_poll volt__reader_stream_end(volt_cx *cx, volt_stream s) {
    return volt_stream_end(cx, ((volt_reader *)s.self)->in_);
}
static volt_poll volt__reader_stream_ready(volt_cx *cx, volt_stream s) {
    return volt_reader_ready(cx, (volt_reader *)s.self);
}
static const volt_stream_ops volt__reader_stream_ops = {
    volt__reader_stream_read, volt__reader_stream_write, volt__reader_stream_end,
    volt__reader_stream_ready
};
VOLT_API volt_stream volt_reader_stream(volt_reader *r) {
    volt_stream s = { &volt__reader_stream_ops, r, -1 };
    return s;
}

// ---- writers

VOLT_API void volt_writer_init(volt_writer *w, volt_stream out, void *buf, size_t cap) {
    memset(w, 0, sizeof *w);
    w->out_ = out;
    w->buf_ = (char *)buf;
    w->self_ = w;
    w->cap_ = cap;
}
VOLT_API size_t volt_unflushed(const volt_writer *w) { return w->to_ - w->from_; }
// While a write is in progress its bytes stay where they are.
VOLT_API size_t volt_writer_room(const volt_writer *w) {
    return w->frozen_ > 0 ? w->cap_ - w->to_ : w->cap_ - (w->to_ - w->from_);
}
// Makes room for n bytes behind what is there. Returns 0, or the result of volt_put.
static int volt__writer_reserve(volt_writer *w, size_t n) {
    if (w->error_ < 0) return w->error_;
    if (n > w->cap_) return -EMSGSIZE;
    if (n > volt_writer_room(w)) return -ENOBUFS;
    if (n > w->cap_ - w->to_) {
        VOLT_ASSERT(w->frozen_ == 0);
        memmove(w->buf_, w->buf_ + w->from_, w->to_ - w->from_);
        w->to_ -= w->from_;
        w->from_ = 0;
    }
    return 0;
}
static void volt__writer_add(volt_writer *w, const void *p, size_t n) {
    VOLT_ASSERT(n <= w->cap_ - w->to_);
    if (n > 0) memcpy(w->buf_ + w->to_, p, n);
    w->to_ += n;
}
VOLT_API int volt_put(volt_writer *w, const void *p, size_t n) {
    int rc = volt__writer_reserve(w, n);
    if (rc == 0) volt__writer_add(w, p, n);
    return rc;
}
static size_t volt__iov_sum(const struct iovec *iov, int n) {
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len = iov[i].iov_len > SIZE_MAX - len ? SIZE_MAX : len + iov[i].iov_len;
    return len;
}
VOLT_API int volt_putv(volt_writer *w, const struct iovec *iov, int n) {
    int rc = volt__writer_reserve(w, volt__iov_sum(iov, n));
    for (int i = 0; rc == 0 && i < n; i++) volt__writer_add(w, iov[i].iov_base, iov[i].iov_len);
    return rc;
}
// The text is formatted into the room at the end, or measured if it does not fit there. The 0 that
// vsnprintf writes behind it may take the place of one byte that is free.
VOLT_API int volt_vputf(volt_writer *w, const char *format, va_list list) {
    va_list copy;
    int rc = volt__writer_reserve(w, 0);
    if (rc < 0) return rc;
    for (int tries = 0;; tries++) {
        size_t room = w->cap_ - w->to_;
        va_copy(copy, list);
        int n = vsnprintf(w->buf_ + w->to_, room, format, copy);
        va_end(copy);
        if (n < 0) return -EINVAL;
        if ((size_t)n < room) {
            w->to_ += (size_t)n;
            return 0;
        }
        rc = volt__writer_reserve(w, (size_t)n + 1);
        if (rc < 0 || tries > 0) return rc < 0 ? rc : -ENOBUFS;
    }
}
VOLT_API int volt_putf(volt_writer *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int rc = volt_vputf(w, format, list);
    va_end(list);
    return rc;
}
VOLT_API int volt_put_record(volt_writer *w, const volt_record_format *f, const struct iovec *iov,
                             int n) {
    unsigned width;
    size_t header, len = volt__iov_sum(iov, n);
    if (volt__record_form(f, &width, &header) < 0) return -EINVAL;
    if (f->keeps_header && len < header) return -EINVAL;
    if (f->keeps_header) len -= header;
    if (len > w->cap_ || header > w->cap_ - len) return w->error_ < 0 ? w->error_ : -EMSGSIZE;
    if (f->most > 0 && len > f->most) return -EMSGSIZE;
    if (f->adjust < (int64_t)len - INT64_MAX) return -EMSGSIZE;
    int64_t number = (int64_t)len - f->adjust;
    if (number < 0 || (width < 8 && (uint64_t)number >> (8 * width) != 0)) return -EMSGSIZE;
    int rc = volt__writer_reserve(w, header + len);
    if (rc < 0) return rc;
    char *head = w->buf_ + w->to_;
    if (!f->keeps_header) {
        memset(head, 0, header);
        w->to_ += header;
    }
    for (int i = 0; i < n; i++) volt__writer_add(w, iov[i].iov_base, iov[i].iov_len);
    volt__record_set(f, width, head + f->offset, (uint64_t)number);
    return 0;
}
static void volt__writer_check(volt_cx *cx, const volt_writer *w) {
    (void)cx, (void)w;
    VOLT__EXPECT_CX(cx, w->self_ == w, "the writer was copied: initialise it in its task");
    volt__check_not_on_stack(cx, w->buf_);
}
// Writes once. Returns 1 if bytes were written, 0 if *out is the result of the poll.
static int volt__writer_write(volt_cx *cx, volt_writer *w, volt_poll *out) {
    if (w->frozen_ == 0) w->frozen_ = w->to_ - w->from_;
    VOLT_ASSERT(w->frozen_ > 0 && w->from_ + w->frozen_ <= w->to_);
    volt__await_next(cx);
    *out = w->out_.ops->write(cx, w->out_, w->buf_ + w->from_, w->frozen_);
    if (volt_is_pending(*out)) return 0;
    int64_t rc = volt_value(*out);
    w->frozen_ = 0;
    if (rc < 0 && rc != -ECANCELED) w->error_ = (int)rc;
    if (rc < 0) return 0;
    w->from_ += (size_t)rc;
    if (w->from_ == w->to_) w->from_ = w->to_ = 0;
    return 1;
}
VOLT_API volt_poll volt_flush(volt_cx *cx, volt_writer *w) {
    volt_poll p;
    volt__writer_check(cx, w);
    if (w->error_ < 0) return volt_ready(w->error_);
    while (w->to_ > w->from_)
        if (!volt__writer_write(cx, w, &p)) return p;
    return volt_ready(0);
}
VOLT_API size_t volt_writer_moved(const volt_writer *w) { return w->moved_; }
VOLT_API volt_poll volt_put_wait(volt_cx *cx, volt_writer *w, const void *p, size_t n) {
    volt_poll out;
    volt__writer_check(cx, w);
    if (w->error_ < 0) return volt_ready(w->error_);
    if (!w->is_moving_) w->moved_ = 0;
    w->is_moving_ = 1;
    for (;;) {
        size_t room = volt_writer_room(w), left = n - w->moved_;
        size_t some = left < room ? left : room;
        if (some > 0) {
            int rc = volt_put(w, (const char *)p + w->moved_, some);
            VOLT_ASSERT(rc == 0);
            (void)rc;
            w->moved_ += some;
        }
        if (w->moved_ == n) break;
        if (!volt__writer_write(cx, w, &out)) {
            if (!volt_is_pending(out)) w->is_moving_ = 0;
            return out;
        }
    }
    w->is_moving_ = 0;
    return volt_ready(0);
}
#endif

//==================================================================================================
// >>combine  select and join over arms, join over arrays
//==================================================================================================
// Awaits of several polls at once: of arms (VOLT_SELECT, VOLT_JOIN_ALL and their variants), and of
// arrays of child functions (volt_join_all and its variants).
//   - One poll of a select or join makes one or more passes. Each pass evaluates all arms in
//     textual order; the phase decides which of them it polls.
//   - An arm or child that has started must end before the await returns. So the end that decides
//     the result cancels the others, and the await returns when they have ended, too. An arm of a
//     select that has not started by then never starts.
//   - Each arm and child has a frame and a shield depth of its own. Both are in force during its
//     poll; then the frame, the shield depth and the cancel level of the await are restored.
//   - A select that is cancelled has no winner, unless an arm ends with another result than
//     -ECANCELED, for example under a shield.
// All functions run in a poll of the awaiting task and take no lock. Other threads access only the
// claim word of the awaiting frame (see >>chan), and nodes that are linked.
//
// The fields of the awaiting frame:
//            select or join over arms                       join over an array
//   key_     eight counters of 8 bits, VOLT__ARMS_...       index of the child that decides, + 1
//   source_  select of at most 8 arms: their order          -
//   next_    select: the claim word of a rendezvous         -
//   prev_    select: the claimed arm; join: the failed arm  -
enum {
    VOLT__ARMS_N,       // number of arms; known after the first pass
    VOLT__ARMS_INDEX,   // arms evaluated so far in this pass
    VOLT__ARMS_START,   // ONE: place in the order; FROM_START, WRAPPED: index of the first arm
    VOLT__ARMS_WINNER,  // index of the arm that decides the result, + 1; 0: none yet
    VOLT__ARMS_LIVE,    // arms found pending in this poll; a DRAIN pass counts from 0 again
    VOLT__ARMS_MODE,    // VOLT__SELECT ...
    VOLT__ARMS_PHASE,   // VOLT__PHASE_...
    VOLT__ARMS_IS_FRESH // 1 during the first pass, which initializes the arms
};
// The phases. No pass polls an arm that has ended.
//   phase       the arms that a pass polls             used by
//   COUNT       no arm; it only counts them            VOLT_SELECT, first pass
//   ONE         the arm at place START of the order    VOLT_SELECT of at most 8 arms
//   FROM_START  the arms from START on                 VOLT_SELECT of more arms
//   WRAPPED     the arms before START                  VOLT_SELECT, after FROM_START
//   DRAIN       the arms that have started, cancelled  a decided or cancelled select, a failed join
//   ALL         all arms                               VOLT_SELECT_BIASED, joins
//   CLAIMED     the arm that prev_ points to           a select with an arm that is claimed
enum {
    VOLT__PHASE_COUNT,
    VOLT__PHASE_ONE,
    VOLT__PHASE_FROM_START,
    VOLT__PHASE_WRAPPED,
    VOLT__PHASE_DRAIN,
    VOLT__PHASE_ALL,
    VOLT__PHASE_CLAIMED
};
// States of an arm: not started, started, ended.
enum { VOLT__ARM_UNUSED, VOLT__ARM_LIVE, VOLT__ARM_DONE };
// Limited by the 8 bits of the counters. Each poll of the await evaluates every arm, so beyond
// about eight arms a group or a poll set is the better choice.
#define VOLT__ARMS_MAX 200u

static inline uint32_t volt__arms_get(const volt__node *node, int which) {
    return node->key_.arms_[which];
}
static inline void volt__arms_set(volt__node *node, int which, uint32_t value) {
    VOLT_ASSERT(value <= 255);
    node->key_.arms_[which] = (uint8_t)value;
}
static inline int volt__arms_is_select(const volt__node *node) {
    return volt__arms_get(node, VOLT__ARMS_MODE) <= VOLT__SELECT_BIASED;
}
static void volt__arms_phase(volt__node *node, uint32_t phase) {
    volt__arms_set(node, VOLT__ARMS_PHASE, phase);
    volt__arms_set(node, VOLT__ARMS_INDEX, 0);
    volt__arms_set(node, VOLT__ARMS_LIVE, 0);
}
// Starts the next pass of a series that polls each arm once: ONE after ONE, or WRAPPED after
// FROM_START. The arms that the earlier passes found pending stay counted.
static void volt__arms_next_phase(volt__node *node, uint32_t phase) {
    uint32_t live = volt__arms_get(node, VOLT__ARMS_LIVE);
    volt__arms_phase(node, phase);
    volt__arms_set(node, VOLT__ARMS_LIVE, live);
}

// ---- the random order of a select
// source_ holds the order of at most 8 arms: the index of the arm at each place, in four bits. The
// order is drawn at random, once per await, so that each of the ready arms is equally likely to be
// polled first.
enum { VOLT__ARMS_ORDERED = 8 };
static uint32_t volt__arms_at(const volt__node *node, uint32_t pass) {
    return (uint32_t)((uintptr_t)node->source_ >> 4 * pass) & 15;
}
static void volt__arms_shuffle(volt__node *node, volt__random *r, uint32_t count) {
    uint32_t order = 0;
    for (uint32_t i = 1; i < count; i++) { // arm i goes to place j, the arm there to place i
        uint32_t j = volt__random_below(r, i + 1), there = order >> 4 * j & 15;
        order = (order & ~(UINT32_C(15) << 4 * j)) | i << 4 * j;
        if (j < i) order |= there << 4 * i;
    }
    node->source_ = (void *)(uintptr_t)order;
}

// ---- passes
// Returns the phase of a poll's first pass, once the arms are counted. ONE starts at place 0 again.
static uint32_t volt__arms_first_phase(volt__node *node, int mode) {
    if (mode != VOLT__SELECT) return VOLT__PHASE_ALL;
    if (volt__arms_get(node, VOLT__ARMS_N) > VOLT__ARMS_ORDERED) return VOLT__PHASE_FROM_START;
    volt__arms_set(node, VOLT__ARMS_START, 0);
    return VOLT__PHASE_ONE;
}
// Begins a poll of the await: sets up the awaiting frame if it is the first one, and chooses the
// phase of the first pass.
VOLT_API void volt__arms_begin(volt_cx *cx, int mode) {
    volt__node *node = cx->frame_;
    int is_fresh = node->kind_ == VOLT__FRESH;
    uint32_t phase = VOLT__PHASE_ALL;
    if (!is_fresh) phase = volt__arms_first_phase(node, mode);
    if (is_fresh) {
        node->kind_ = VOLT__ARMS;
        node->key_.any_ = 0;
        node->next_ = node->prev_ = NULL;
        volt__arms_set(node, VOLT__ARMS_MODE, (uint32_t)mode);
        volt__arms_set(node, VOLT__ARMS_IS_FRESH, 1);
        if (mode == VOLT__SELECT) phase = VOLT__PHASE_COUNT;
    }
    VOLT__REQUIRE_CX(cx, node->kind_ == VOLT__ARMS, "two polls in one await: use VOLT_ARM");
    volt__node *claimed = volt__select_begin_poll(node);
    if (volt__arms_get(node, VOLT__ARMS_WINNER)) {
        phase = VOLT__PHASE_DRAIN;
    } else if (claimed) {
        phase = VOLT__PHASE_CLAIMED;
        node->prev_ = claimed;
    }
    volt__arms_phase(node, phase);
}
static int volt__arm_is_due(volt__node *node, const volt_arm *a, uint32_t index) {
    switch (volt__arms_get(node, VOLT__ARMS_PHASE)) {
    case VOLT__PHASE_ONE:
        return a->state_ != VOLT__ARM_DONE &&
               index == volt__arms_at(node, volt__arms_get(node, VOLT__ARMS_START));
    case VOLT__PHASE_CLAIMED: return node->prev_ == &a->node_;
    case VOLT__PHASE_FROM_START:
        return a->state_ != VOLT__ARM_DONE && index >= volt__arms_get(node, VOLT__ARMS_START);
    case VOLT__PHASE_WRAPPED:
        return a->state_ != VOLT__ARM_DONE && index < volt__arms_get(node, VOLT__ARMS_START);
    case VOLT__PHASE_DRAIN: return a->state_ == VOLT__ARM_LIVE;
    case VOLT__PHASE_ALL: return a->state_ != VOLT__ARM_DONE;
    default: return 0;
    }
}
// Returns 1 if this pass polls the arm, else 0. If 1, the frame, shield depth and cancel level of
// the arm are in force until volt__arm_poll_end.
VOLT_API int volt__arm_poll_begin(volt_cx *cx, volt_arm *a) {
    volt__node *node = cx->frame_;
    uint32_t index = volt__arms_get(node, VOLT__ARMS_INDEX);
    VOLT__REQUIRE_CX(cx, index < VOLT__ARMS_MAX, "too many arms");
    VOLT__EXPECT_CX(cx, &a->node_ != node, "volt_arm nested in itself");
    volt__arms_set(node, VOLT__ARMS_INDEX, index + 1);
    if (volt__arms_get(node, VOLT__ARMS_IS_FRESH)) {
        volt__check_not_on_stack(cx, a);
        VOLT__EXPECT_CX(cx, a->node_.state_ == VOLT__IDLE, "volt_arm used twice, or not zeroed");
        memset(a, 0, sizeof *a);
        a->value = -ECANCELED; // remains if the arm never starts
        VOLT__DEBUG_DO(a->node_.resume_line_ = index); // otherwise unused in an arm
    }
    VOLT__EXPECT_CX(cx, a->node_.resume_line_ == index, "volt_arm used twice");
    int is_won = volt__arms_get(node, VOLT__ARMS_WINNER) != 0,
        is_select = volt__arms_is_select(node);
    // the rest of a pass in which an arm has won polls no arm: a DRAIN pass follows
    if (is_select && is_won && volt__arms_get(node, VOLT__ARMS_PHASE) != VOLT__PHASE_DRAIN)
        return 0;
    if (!volt__arm_is_due(node, a, index)) return 0;
    if (a->state_ == VOLT__ARM_UNUSED) {
        a->shield_depth_ = cx->shield_depth_;
        a->parent_ = node;
        a->node_.shield_base_ = is_select ? VOLT__IN_SELECT : 0;
    }
    if (volt__arms_get(node, VOLT__ARMS_PHASE) == VOLT__PHASE_CLAIMED)
        a->node_.shield_base_ = VOLT__IN_SELECT | VOLT__CLAIMED;
    a->state_ = VOLT__ARM_LIVE;
    a->outer_shield_depth_ = cx->shield_depth_;
    a->outer_cancel_level_ = cx->cancel_level_;
    // at the shield depth of the await, so that shields inside the arm still hold
    if (is_won) volt__raise_cancel_level(cx, cx->shield_depth_);
    cx->shield_depth_ = a->shield_depth_;
    cx->frame_ = &a->node_;
    VOLT__DEBUG_DO(cx->is_awaiting_ = 1);
    return 1;
}
// Returns 1 if the arm has ended and its value counts; `fired` of the arm is then 1. Returns 0 if
// the arm is pending, if its select was decided before, or if it has ended with -ECANCELED in a
// cancelled select.
VOLT_API int volt__arm_poll_end(volt_cx *cx, volt_arm *a, volt_poll p) {
    volt__node *node = a->parent_;
    VOLT__EXPECT_CX(cx, volt_is_pending(p) || cx->frame_ == &a->node_,
                    "a child returned without VOLT_RETURN or VOLT_END");
    VOLT_ASSERT(a->state_ == VOLT__ARM_LIVE && volt__arms_get(node, VOLT__ARMS_INDEX) > 0);
    a->shield_depth_ = cx->shield_depth_;
    cx->shield_depth_ = a->outer_shield_depth_;
    cx->cancel_level_ = a->outer_cancel_level_;
    cx->frame_ = node;
    if (volt_is_pending(p)) {
        volt__arms_set(node, VOLT__ARMS_LIVE, volt__arms_get(node, VOLT__ARMS_LIVE) + 1);
        return 0;
    }
    a->state_ = VOLT__ARM_DONE;
    a->value = volt_value(p);
    int is_won = volt__arms_get(node, VOLT__ARMS_WINNER) != 0;
    if (volt__arms_is_select(node)) {
        if (is_won) return 0;
        // an arm that ends with -ECANCELED in a cancelled select does not win
        if (volt__scope_is_cancelled(cx) && a->value == -ECANCELED) return 0;
        volt__arms_set(node, VOLT__ARMS_WINNER, volt__arms_get(node, VOLT__ARMS_INDEX));
    } else if (volt__arms_get(node, VOLT__ARMS_MODE) == VOLT__TRY_JOIN_ALL && a->value < 0 &&
               !is_won) {
        volt__arms_set(node, VOLT__ARMS_WINNER, volt__arms_get(node, VOLT__ARMS_INDEX));
        // the await gives the value of this arm; a join does not use prev_ otherwise
        a->parent_->prev_ = &a->node_;
    }
    a->fired = 1;
    return 1;
}
// Called after each pass. Returns 1 if another pass follows in this poll, else 0. `last` is there
// for its type: a bare poll in place of the last arm does not compile.
VOLT_API int volt__arms_next_pass(volt_cx *cx, volt__arm_status last) {
    volt__node *node = cx->frame_;
    uint32_t phase = volt__arms_get(node, VOLT__ARMS_PHASE),
             count = volt__arms_get(node, VOLT__ARMS_INDEX);
    (void)last;
    VOLT__EXPECT_CX(
        cx, volt__arms_get(node, VOLT__ARMS_IS_FRESH) ||
        volt__arms_get(node, VOLT__ARMS_N) == count, "the number of arms has changed");
    volt__arms_set(node, VOLT__ARMS_IS_FRESH, 0);
    volt__arms_set(node, VOLT__ARMS_N, count);
    if (phase == VOLT__PHASE_COUNT) {
        if (count <= VOLT__ARMS_ORDERED) volt__arms_shuffle(node, &cx->worker_->random, count);
        else volt__arms_set(node, VOLT__ARMS_START,
                            volt__random_below(&cx->worker_->random, count));
        volt__arms_phase(node, volt__arms_first_phase(node, VOLT__SELECT));
        return 1;
    }
    if (phase == VOLT__PHASE_DRAIN) return 0;
    // The claimed arm is pending, so it had no budget left. It is polled first in the next poll of
    // the await, and wins then, even if the scope is cancelled. Until then no other arm is polled.
    if (phase == VOLT__PHASE_CLAIMED && !volt__arms_get(node, VOLT__ARMS_WINNER) &&
        volt__arms_get(node, VOLT__ARMS_LIVE))
        return 0;
    uint32_t pass = volt__arms_get(node, VOLT__ARMS_START) + 1;
    int has_more = phase == VOLT__PHASE_FROM_START || (phase == VOLT__PHASE_ONE && pass < count);
    if (volt__arms_get(node, VOLT__ARMS_WINNER) ||
        (volt__arms_is_select(node) && !has_more && volt__scope_is_cancelled(cx))) {
        volt__arms_phase(node, VOLT__PHASE_DRAIN);
        return 1;
    }
    if (!has_more) return 0;
    if (phase == VOLT__PHASE_ONE) volt__arms_set(node, VOLT__ARMS_START, pass);
    else phase = VOLT__PHASE_WRAPPED;
    volt__arms_next_phase(node, phase);
    return 1;
}
// Ends a poll of the await. Pending while an arm that has started is; else ready with the result of
// the await. `done` is there for its evaluation, which makes the passes.
VOLT_API volt_poll volt__arms_end(volt_cx *cx, int done) {
    volt__node *node = cx->frame_;
    VOLT_ASSERT(node->kind_ == VOLT__ARMS);
    uint32_t winner = volt__arms_get(node, VOLT__ARMS_WINNER);
    (void)done;
    if (volt__arms_get(node, VOLT__ARMS_LIVE)) {
        // With a winner the claim word stays at polling, so that no other arm can be claimed.
        int was_claimed = volt__arms_get(node, VOLT__ARMS_PHASE) == VOLT__PHASE_CLAIMED;
        if (!winner) volt__select_end_poll(node, was_claimed ? node->prev_ : NULL);
        return volt_pending();
    }
    int64_t rc = volt__scope_is_cancelled(cx) ? -ECANCELED : 0;
    if (volt__arms_is_select(node)) {
        rc = winner ? (int64_t)winner - 1 : -ECANCELED;
    } else if (winner) {
        rc = VOLT__CONTAINER(volt_arm, node_, node->prev_)->value;
    }
    node->next_ = node->prev_ = NULL;
    return volt__leaf_ready(node, rc);
}

// ---- arrays of children
// Each element is the state of a child function and begins with its frame. saved_cancel_level_ of
// that frame holds the shield depth of the child between polls. In each mode the await ends when
// all children have ended. Its results:
//   ALL  0, or -ECANCELED if the scope is cancelled by then
//   TRY  the first negative value with which a child ends: that end cancels the others. Without
//        one, as ALL
//   ANY  the index of the first child that ends: that end cancels the others. -ECANCELED if the
//        scope is cancelled and no child ends with another value, or if the array is empty
enum { VOLT__CHILD_ARRAY_ALL, VOLT__CHILD_ARRAY_TRY, VOLT__CHILD_ARRAY_ANY };
static volt__node *volt__child_array_frame(void *states, size_t stride, size_t i) {
    return (volt__node *)(void *)((char *)states + i * stride);
}
// Zeroes the frames of the children: volt__frame_enter does not reset the frame of an array child.
static void volt__child_array_start(volt_cx *cx, volt__node *node, void *states, size_t stride,
                                    size_t count) {
    node->kind_ = VOLT__CHILD_ARRAY;
    node->key_.any_ = 0;
    for (size_t i = 0; i < count; i++) {
        volt__node *child = volt__child_array_frame(states, stride, i);
        memset(child, 0, sizeof *child);
        child->saved_cancel_level_ = cx->shield_depth_;
    }
}
// is_cancelled: another child has decided the result.
static volt_poll volt__child_array_poll_one(volt_cx *cx, volt_fn *fn, volt__node *child,
                                            int is_cancelled) {
    uint8_t shield_depth = cx->shield_depth_, cancel_level = cx->cancel_level_;
    if (is_cancelled) volt__raise_cancel_level(cx, shield_depth);
    volt__node *parent = cx->frame_;
    cx->shield_depth_ = child->saved_cancel_level_;
    VOLT__DEBUG_DO(cx->is_awaiting_ = 1);
    volt_poll p = fn(cx, child);
    child->saved_cancel_level_ = cx->shield_depth_;
    cx->shield_depth_ = shield_depth;
    cx->cancel_level_ = cancel_level;
    cx->frame_ = parent;
    return p;
}
// Returns 1 if a child that ends with this value decides the result, else 0. is_cancelled: the
// scope of the await is cancelled.
static int volt__child_array_decides(int mode, int64_t value, int is_cancelled) {
    if (mode == VOLT__CHILD_ARRAY_TRY) return value < 0;
    return mode == VOLT__CHILD_ARRAY_ANY && !(is_cancelled && value == -ECANCELED);
}
static volt_poll volt__child_array_poll(volt_cx *cx, int mode, volt_fn *fn, void *states,
                                        size_t stride, size_t count) {
    volt__node *node = cx->frame_;
    size_t live = 0;
    VOLT__REQUIRE_CX(cx, node != NULL && stride >= sizeof(volt_frame),
                     "volt_join_all: use VOLT_EACH(fn, array)");
    VOLT__EXPECT_CX(cx, cx->is_awaiting_, "wait called outside VOLT_AWAIT, after this line");
    volt__check_not_on_stack(cx, states);
    if (node->kind_ == VOLT__FRESH) volt__child_array_start(cx, node, states, stride, count);
    VOLT__REQUIRE_CX(cx, node->kind_ == VOLT__CHILD_ARRAY, "two polls in one await: use VOLT_ARM");
    // A child that decides the result cancels the others. Those behind it are polled cancelled in
    // the same pass; a second pass reaches those before it.
    for (int again = 1; again;) {
        int was_decided = node->key_.decider_ != 0;
        live = 0;
        for (size_t i = 0; i < count; i++) {
            volt__node *child = volt__child_array_frame(states, stride, i);
            if (child->resume_line_ == VOLT__DONE) continue;
            volt_poll p = volt__child_array_poll_one(cx, fn, child, node->key_.decider_ != 0);
            if (volt_is_pending(p)) {
                live++;
            } else if (node->key_.decider_ == 0 && volt__child_array_decides(mode, volt_value(p),
                                                                    volt__scope_is_cancelled(cx))) {
                node->key_.decider_ = (int64_t)i + 1;
            }
        }
        again = !was_decided && node->key_.decider_ != 0 && live > 0;
    }
    if (live > 0) return volt_pending();
    int is_undecided = mode == VOLT__CHILD_ARRAY_ANY && node->key_.decider_ == 0;
    int64_t rc = volt__scope_is_cancelled(cx) || is_undecided
                     ? -ECANCELED
                     : 0;
    if (node->key_.decider_ != 0 && mode == VOLT__CHILD_ARRAY_ANY) rc = node->key_.decider_ - 1;
    if (node->key_.decider_ != 0 && mode == VOLT__CHILD_ARRAY_TRY)
        rc = volt__child_array_frame(states, stride, (size_t)node->key_.decider_ - 1)
                 ->key_.result_;
    return volt__leaf_ready(node, rc);
}
VOLT_API volt_poll volt_join_all(volt_cx *cx, volt_fn *fn, void *states, size_t stride, size_t n) {
    return volt__child_array_poll(cx, VOLT__CHILD_ARRAY_ALL, fn, states, stride, n);
}
VOLT_API volt_poll volt_try_join_all(volt_cx *cx, volt_fn *fn, void *states, size_t stride,
                                     size_t n) {
    return volt__child_array_poll(cx, VOLT__CHILD_ARRAY_TRY, fn, states, stride, n);
}
VOLT_API volt_poll volt_join_any(volt_cx *cx, volt_fn *fn, void *states, size_t stride, size_t n) {
    return volt__child_array_poll(cx, VOLT__CHILD_ARRAY_ANY, fn, states, stride, n);
}

//==================================================================================================
// >>copy  copying between streams, files to sockets
//==================================================================================================
// A copy reads from one stream and writes to another. Between two descriptors the bytes go through
// a pipe, by splice(2), and are never in this process; else they go through a buffer.
//   - Bytes on their way are in_pipe_ bytes of the pipe, or buf_[at_ .. at_ + n_): not both. They
//     are written before anything is read, so the order is kept whichever way the next ones take.
//   - A copier has a pipe only while bytes are in it, and returns it to the runtime then: a relay
//     that waits costs no descriptor. A file that cannot be spliced is found out by -EINVAL.
//   - n_copied_ counts the bytes that were written.
// All functions are called by one task, in its polls.
#ifndef VOLT_NO_STREAM
#define VOLT__F_SETPIPE_SZ 1031
// COPY_BYTES: the most that one splice moves, and the size of a large pipe.
enum { VOLT__COPY_BYTES = 1 << 20, VOLT__COPY_BUFFER = 16384 };
typedef struct volt__copy_args {
    volt_cx *cx;
    volt_copier *c;
} volt__copy_args;

VOLT_API void volt_copier_init(volt_copier *c, volt_stream from, volt_stream to, void *buf_or_null,
                               size_t cap) {
    memset(c, 0, sizeof *c);
    c->from_ = from;
    c->to_ = to;
    c->buf_ = (char *)buf_or_null;
    c->cap_ = buf_or_null ? cap : 0;
    c->has_no_splice_ = from.fd < 0 || to.fd < 0;
    c->pipe_[0] = c->pipe_[1] = -1;
}
VOLT_API uint64_t volt_copied(const volt_copier *c) { return c->n_copied_; }
VOLT_API int volt_copy_failed_at(const volt_copier *c) { return c->failed_at_; }

// ---- pipes

// Returns 0 or -errno.
static int volt__pipe_take(volt_rt *rt, volt_copier *c) {
    volt__lock(&rt->pipes_lock);
    const volt__pipe *pipe = rt->n_pipes > 0 ? &rt->pipes[--rt->n_pipes] : NULL;
    if (pipe) {
        memcpy(c->pipe_, pipe->fd, sizeof c->pipe_);
        c->has_big_pipe_ = pipe->is_big;
    }
    volt__unlock(&rt->pipes_lock);
    if (pipe) return 0;
    return VOLT_SYS(pipe2, c->pipe_, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
}
// The pipe is empty if is_kept.
static void volt__pipe_give(volt_rt *rt, volt_copier *c, int is_kept) {
    volt__lock(&rt->pipes_lock);
    is_kept = is_kept && rt->n_pipes < VOLT__PIPES;
    if (is_kept) {
        volt__pipe *pipe = &rt->pipes[rt->n_pipes++];
        memcpy(pipe->fd, c->pipe_, sizeof pipe->fd);
        pipe->is_big = c->has_big_pipe_;
    } else if (c->has_big_pipe_) {
        volt__store_rlx(&rt->n_big_pipes, rt->n_big_pipes - 1); // rlx: hint for enlarge
    }
    volt__unlock(&rt->pipes_lock);
    for (int i = 0; i < 2; i++) {
        if (!is_kept) VOLT_SYS(close, c->pipe_[i]);
        c->pipe_[i] = -1;
    }
    c->has_big_pipe_ = 0;
}
// Called when the pipe was nearly filled. There are few large pipes, because they count against a
// limit of the user (pipe-user-pages-soft), beyond which new pipes are tiny. One that the kernel
// refuses counts for good, so that it is not asked again and again.
static void volt__pipe_enlarge(volt_rt *rt, volt_copier *c) {
    uint32_t n = volt__load_rlx(&rt->n_big_pipes); // rlx: hint
    if (c->has_big_pipe_ || n >= VOLT__BIG_PIPES) return;
    volt__lock(&rt->pipes_lock);
    int may_be_big = rt->n_big_pipes < VOLT__BIG_PIPES;
    if (may_be_big) volt__store_rlx(&rt->n_big_pipes, rt->n_big_pipes + 1); // rlx: as above
    volt__unlock(&rt->pipes_lock);
    if (may_be_big && VOLT_SYS(fcntl, c->pipe_[1], VOLT__F_SETPIPE_SZ, VOLT__COPY_BYTES) >= 0)
        c->has_big_pipe_ = 1;
}
VOLT_API void volt_copier_close(volt_cx *cx, volt_copier *c) {
    volt_allocator *a = &cx->rt_->cfg.alloc;
    if (c->pipe_[0] >= 0) volt__pipe_give(cx->rt_, c, 0);
    if (c->is_ours_) a->free(a->user, c->buf_, VOLT__COPY_BUFFER);
    if (c->is_ours_) c->buf_ = NULL;
    c->is_ours_ = 0;
    c->in_pipe_ = c->n_ = 0;
}

// ---- by splice

// Returns 1 if the call may have raised SIGPIPE: also if it was cut, as the kernel may raise it for
// the second part of a transfer, and return the length of the first.
static int volt__copy_may_signal(ssize_t n, int error, size_t len) {
    return n < 0 ? error == EPIPE : (size_t)n < len;
}
// splice(2) has no flag against SIGPIPE, see volt__write_nosignal. Returns -EINVAL if it does not
// work here: for such files, by this kernel, or because of a filter.
static int64_t volt__copy_splice(volt_cx *cx, int from, int to, size_t len, int is_out) {
    volt__sigpipe held;
    int is_caller = is_out && !cx->worker_->has_thread;
    if (is_caller) volt__sys_sigpipe_block(&held);
    ssize_t n = VOLT_SYS(splice, from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    int error = n < 0 ? errno : 0;
    if (is_caller) volt__sys_sigpipe_unblock(&held, volt__copy_may_signal(n, error, len));
    if (n >= 0) return (int64_t)n;
    return volt__sys_is_unsupported(error) ? -EINVAL : -error;
}
// The bytes on their way may exceed the limit: that of an earlier call, which was cancelled, may
// have been higher.
static size_t volt__copy_left(const volt_copier *c, size_t most) {
    uint64_t left = c->limit_ - c->n_copied_;
    return left < most ? (size_t)left : most;
}
// Returns -EINVAL also if there is no pipe: the bytes then go through the buffer.
static int64_t volt__copy_splice_in(int fd, void *arg) {
    volt__copy_args *a = (volt__copy_args *)arg;
    volt_copier *c = a->c;
    if (volt__pipe_take(a->cx->rt_, c) < 0) return -EINVAL;
    int64_t n = volt__copy_splice(a->cx, fd, c->pipe_[1], volt__copy_left(c, VOLT__COPY_BYTES), 0);
    if (n <= 0) volt__pipe_give(a->cx->rt_, c, 1);
    else c->in_pipe_ = (size_t)n;
    if (n >= VOLT_PIPE_MANY) volt__pipe_enlarge(a->cx->rt_, c);
    return n;
}
static int64_t volt__copy_splice_out(int fd, void *arg) {
    volt__copy_args *a = (volt__copy_args *)arg;
    volt_copier *c = a->c;
    return volt__copy_splice(a->cx, c->pipe_[0], fd, volt__copy_left(c, c->in_pipe_), 1);
}

// ---- by a buffer

static int volt__copy_buffer(volt_cx *cx, volt_copier *c) {
    volt_allocator *a = &cx->rt_->cfg.alloc;
    if (c->buf_ && c->cap_ > 0) return 0;
    void *buf = a->alloc(a->user, VOLT__COPY_BUFFER, 16);
    if (!buf) return -ENOMEM;
    c->buf_ = (char *)buf;
    c->cap_ = VOLT__COPY_BUFFER;
    c->is_ours_ = 1;
    return 0;
}
// The target cannot be spliced to: takes the bytes out of the pipe. The buffer may be smaller.
static int volt__copy_unpipe(volt_cx *cx, volt_copier *c) {
    int rc = volt__copy_buffer(cx, c);
    if (rc < 0) return rc;
    size_t most = c->in_pipe_ < c->cap_ ? c->in_pipe_ : c->cap_;
    ssize_t n;
    do n = VOLT_SYS(read, c->pipe_[0], c->buf_, most);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return n < 0 ? -errno : -EIO;
    c->in_pipe_ -= (size_t)n;
    c->at_ = 0;
    c->n_ = (size_t)n;
    if (c->in_pipe_ == 0) volt__pipe_give(cx->rt_, c, 1);
    return 0;
}

// ---- one step in either direction

// Reads once. The result is the number of bytes, 0 at the end, or -errno.
static volt_poll volt__copy_read(volt_cx *cx, volt_copier *c) {
    volt__copy_args args = { cx, c };
    if (!c->has_no_splice_) {
        volt_poll p = volt_io(cx, c->from_.fd, VOLT_IN, volt__copy_splice_in, &args);
        if (volt_is_pending(p) || volt_value(p) != -EINVAL) return p;
        c->has_no_splice_ = 1;
        volt__await_next(cx);
    }
    int rc = volt__copy_buffer(cx, c);
    if (rc < 0) return volt_ready(rc);
    volt_poll p = c->from_.ops->read(cx, c->from_, c->buf_, volt__copy_left(c, c->cap_));
    if (!volt_is_pending(p) && volt_value(p) > 0) {
        c->at_ = 0;
        c->n_ = (size_t)volt_value(p);
    }
    return p;
}
// Writes once of what is on its way. The result is the number of bytes, or -errno.
static volt_poll volt__copy_write(volt_cx *cx, volt_copier *c) {
    volt__copy_args args = { cx, c };
    volt_poll p;
    if (c->n_ == 0) {
        VOLT_ASSERT(c->in_pipe_ > 0);
        p = volt_io(cx, c->to_.fd, VOLT_OUT, volt__copy_splice_out, &args);
        if (volt_is_pending(p)) return p;
        if (volt_value(p) != -EINVAL) {
            if (volt_value(p) > 0) c->in_pipe_ -= (size_t)volt_value(p);
            if (c->in_pipe_ == 0) volt__pipe_give(cx->rt_, c, 1);
            return p;
        }
        c->has_no_splice_ = 1;
        int rc = volt__copy_unpipe(cx, c);
        if (rc < 0) return volt_ready(rc);
        volt__await_next(cx);
    }
    p = c->to_.ops->write(cx, c->to_, c->buf_ + c->at_, volt__copy_left(c, c->n_));
    if (!volt_is_pending(p) && volt_value(p) > 0) {
        c->at_ += (size_t)volt_value(p);
        c->n_ -= (size_t)volt_value(p);
    }
    return p;
}
// Returns the error of rc_.
static int64_t volt__copy_failed(volt_copier *c, uint8_t failed_at) {
    if (c->rc_ != -ECANCELED) c->failed_at_ = failed_at;
    return c->rc_;
}
VOLT_API volt_poll volt_copy(volt_cx *cx, volt_copier *c, uint64_t at_most) {
    VOLT_BEGIN(cx, c);
    c->limit_ = at_most > UINT64_MAX - c->n_copied_ ? UINT64_MAX : c->n_copied_ + at_most;
    c->failed_at_ = 0;
    for (;;) {
        while (c->in_pipe_ + c->n_ > 0 && c->n_copied_ < c->limit_) {
            VOLT_AWAIT(c->rc_, volt__copy_write(cx, c));
            if (c->rc_ < 0) VOLT_RETURN(volt__copy_failed(c, VOLT_OUT));
            c->n_copied_ += (uint64_t)c->rc_;
            c->moved_at_ = volt_now();
        }
        if (c->n_copied_ >= c->limit_) break;
        VOLT_AWAIT(c->rc_, volt__copy_read(cx, c));
        if (c->rc_ < 0) VOLT_RETURN(volt__copy_failed(c, VOLT_IN));
        if (c->rc_ == 0) break;
        c->moved_at_ = volt_now();
    }
    VOLT_END(0);
}

// ---- both ways

VOLT_API void volt_relayer_init(volt_relayer *r, volt_stream a, volt_stream b, volt_time idle) {
    memset(r, 0, sizeof *r);
    volt_copier_init(&r->way_[0], a, b, NULL, 0);
    volt_copier_init(&r->way_[1], b, a, NULL, 0);
    r->limit_ = idle;
}
VOLT_API int volt_relay_is_idle(const volt_relayer *r) { return r->is_idle_; }
VOLT_API const volt_copier *volt_relay_way(const volt_relayer *r, int way) {
    return &r->way_[way != 0];
}
// Copies one way, and passes on the end. That the other side takes no end any more is no error: its
// own direction tells what has become of it.
static volt_poll volt__relay_one(volt_cx *cx, volt_relayer *r, int i) {
    volt__relay_way *const way = &r->arm_state_[i];
    VOLT_BEGIN(cx, way);
    VOLT_AWAIT(way->rc_, volt_copy(cx, &r->way_[i], VOLT_ALL));
    if (way->rc_ < 0) VOLT_RETURN(way->rc_);
    VOLT_AWAIT(volt_stream_end(cx, r->way_[i].to_));
    VOLT_END(0);
}
static volt_poll volt__relay_both(volt_cx *cx, volt_relayer *r) {
    volt__relay_way *const both = &r->both_;
    VOLT_BEGIN(cx, both);
    VOLT_AWAIT(both->rc_, VOLT_TRY_JOIN_ALL(VOLT_ARM(&r->arm_[0], volt__relay_one(cx, r, 0)),
                                            VOLT_ARM(&r->arm_[1], volt__relay_one(cx, r, 1))));
    VOLT_END(both->rc_);
}
// Returns the time at which the relay ends, unless something moves.
static volt_time volt__relay_idle_end(const volt_relayer *r) {
    volt_time a = r->way_[0].moved_at_, b = r->way_[1].moved_at_;
    return volt__time_add(a > b ? a : b, r->limit_);
}
// Ends when nothing has moved for the limit.
static volt_poll volt__relay_watch(volt_cx *cx, volt_relayer *r) {
    volt__relay_way *const watch = &r->idle_;
    VOLT_BEGIN(cx, watch);
    while (volt__relay_idle_end(r) > volt_now()) {
        VOLT_AWAIT(watch->rc_, volt_sleep_until(cx, volt__relay_idle_end(r)));
        if (watch->rc_ < 0) VOLT_RETURN(watch->rc_);
    }
    VOLT_END(0);
}
VOLT_API volt_poll volt_relay(volt_cx *cx, volt_relayer *r) {
    VOLT_BEGIN(cx, r);
    r->way_[0].moved_at_ = r->way_[1].moved_at_ = volt_now();
    VOLT_AWAIT(r->rc_, VOLT_SELECT_BIASED(VOLT_ARM(&r->arm_[2], volt__relay_both(cx, r)),
                                          VOLT_ARM(&r->arm_[3], volt__relay_watch(cx, r))));
    for (int i = 0; i < 2; i++) volt_copier_close(cx, &r->way_[i]);
    if (r->rc_ < 0) VOLT_RETURN(r->rc_);
    r->is_idle_ = r->rc_ == 1;
    VOLT_END(r->is_idle_ ? -ETIMEDOUT : r->arm_[2].value);
}

// ---- files to sockets

typedef struct volt__sendfile_args {
    volt_cx *cx;
    int file;
    int64_t *offset;
    size_t len;
} volt__sendfile_args;
static int64_t volt__sendfile_call(int fd, void *arg) {
    volt__sendfile_args *a = (volt__sendfile_args *)arg;
    off_t at = (off_t)*a->offset;
    volt__sigpipe held;
    int is_caller = !a->cx->worker_->has_thread; // see volt__write_nosignal
    if (at != *a->offset) return -EOVERFLOW;
    if (is_caller) volt__sys_sigpipe_block(&held);
    ssize_t n = VOLT_SYS(sendfile, fd, a->file, &at, a->len);
    int error = n < 0 ? errno : 0;
    if (is_caller) volt__sys_sigpipe_unblock(&held, volt__copy_may_signal(n, error, a->len));
    if (n > 0) *a->offset = at;
    return n < 0 ? -error : (int64_t)n;
}
VOLT_API volt_poll volt_sendfile(volt_cx *cx, int fd, int file, int64_t *offset, size_t len) {
    volt__sendfile_args args = { cx, file, offset, len };
    volt__check_not_on_stack(cx, offset);
    return volt_io(cx, fd, VOLT_OUT, volt__sendfile_call, &args);
}
VOLT_API void volt_close_reset(volt_cx *cx, int fd) {
    (void)volt_set_linger(fd, 0);
    volt_close(cx, fd);
}
#endif

//==================================================================================================
// >>names  host names: lookup and connection
//==================================================================================================
// Lookups of host names by getaddrinfo, which blocks: as jobs of the pool, in a lane of their own.
// Connections to a host by name. Under VOLT_SINGLE_THREAD there is no pool: a lookup blocks inside
// the poll.
//   - Tasks that look up the same host and service at the same time share one query. A query is
//     listed in rt->queries until it is answered or abandoned. Only a listed query can be joined.
//   - A query is answered at most once: by the pool thread that ran its job, or by the thread that
//   found
//     that no pool thread can be started for its lane. The answer fires all waiters.
//   - A query is abandoned when its last waiter is cancelled. Its job is then taken back from the
//     pool, or if it has started, runs to its end without effect.
//   - A query is freed with its last reference: one for its job, and one for each task until that
//     task has copied the answer or is cancelled.
// The `resolve` and `dial` functions run in a poll of the waiting task. volt__query_run is called
// by a pool thread (without a pool, by the waiting task), volt__query_fail by a task that submits
// another query. Under names_lock no other lock is taken, no allocator hook is called, and
// getaddrinfo does not run.
#ifndef VOLT_NO_NAMES
enum { VOLT__NAMES_MAX = 16 }; // limit of the addresses of one query
// One call of getaddrinfo.
typedef struct volt__query {
    struct volt__query *next; // under names_lock: link in rt->queries
    volt_rt *rt;              // once
    volt_job job;             // once submitted, the pool's; unused under VOLT_SINGLE_THREAD
    volt__node *waiters;      // under names_lock
    uint32_t refs, is_listed; // under names_lock: references; 1: is in rt->queries
    // the answer: W the thread that answers, R the waiting tasks once they are fired
    int rc;                          // number of addresses, or -errno
    volt_addr addr[VOLT__NAMES_MAX]; // the first rc are valid
    char host[256], service[32];     // once
} volt__query;

// Returns the -errno for an error of getaddrinfo. Called right after it, since EAI_SYSTEM refers to
// errno.
static int volt__names_error(int rc) {
    switch (rc) {
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
    case EAI_NONAME:
    case EAI_SERVICE: return -ENOENT;
    case EAI_AGAIN: return -EAGAIN;
    case EAI_MEMORY: return -ENOMEM;
    case EAI_SYSTEM: return errno > 0 ? -errno : -EIO;
    default: return -EIO;
    }
}
// Calls getaddrinfo. Returns the number of addresses, at most VOLT__NAMES_MAX, or -errno. If the
// first VOLT__NAMES_MAX are all of one family, the first address of another family replaces the
// last of them.
static int volt__names_lookup(volt__query *q) {
    struct addrinfo hints, *list = NULL;
    int n = 0, n_others = 0;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM; // each address once, not once per type of socket
    int rc = VOLT_SYS(getaddrinfo, q->host, q->service, &hints, &list);
    if (rc != 0) return volt__names_error(rc);
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        if (a->ai_addrlen > sizeof q->addr[0].sa_) continue;
        int is_other = n > 0 && a->ai_family != volt_addr_family(&q->addr[0]);
        if (n < VOLT__NAMES_MAX) n++;
        else if (!is_other || n_others > 0) continue; // no room
        n_others += is_other;
        volt__addr_set(&q->addr[n - 1], a->ai_addr, a->ai_addrlen);
    }
    if (list) VOLT_SYS(freeaddrinfo, list); // musl's does not accept NULL
    return n > 0 ? n : -ENOENT;
}
// Called under names_lock. Releases a reference. Returns 1 if it was the last one: the caller frees
// the query after the unlock.
static int volt__query_release(volt__query *q) {
    VOLT_ASSERT(q->refs > 0);
    return --q->refs == 0;
}
static void volt__query_free(volt__query *q) {
    q->rt->cfg.alloc.free(q->rt->cfg.alloc.user, q, sizeof *q);
}
// Called under names_lock. Does nothing if the query is not listed.
static void volt__query_unlist(volt__query *q) {
    volt__query **at = &q->rt->queries;
    if (!q->is_listed) return;
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    q->is_listed = 0;
}
// Answers a query: fires all waiters, and releases the reference of the job. Called without a lock.
// LAST TOUCH of *q at the unlock, unless the reference was the last one.
static void volt__query_complete(volt__query *q, int rc) {
    volt_rt *rt = q->rt;
    volt__chain c;
    volt__chain_init(&c);
    volt__lock(&rt->names_lock);
    q->rc = rc;
    volt__query_unlist(q);
    volt__list_fire_all(&q->waiters, VOLT__FIRED, &c);
    int is_last = volt__query_release(q);
    volt__unlock(&rt->names_lock);
    if (is_last) volt__query_free(q);
    volt__schedule_chain(&c);
}
static void volt__query_run(void *arg) {
    volt__query *q = (volt__query *)arg;
    volt__query_complete(q, volt__names_lookup(q));
}
static volt__query *volt__query_create(volt_rt *rt, const char *host, const char *service) {
    volt_allocator *a = &rt->cfg.alloc;
    volt__query *q = (volt__query *)a->alloc(a->user, sizeof *q, VOLT__CACHE_LINE);
    if (!q) return NULL;
    memset(q, 0, sizeof *q);
    q->rt = rt;
    q->refs = 1; // the job's reference
    memcpy(q->host, host, strlen(host) + 1);
    memcpy(q->service, service, strlen(service) + 1);
    return q;
}
// Called under names_lock, by the runner of t. Links the node, and makes a reference for the task.
static void volt__query_add_waiter(volt__query *q, volt__node *node, volt__task *t) {
    q->refs++;
    volt__node_bind(node, t, q);
    volt__list_push(&q->waiters, node);
}
// Called once the node was fired, which only the answer does: volt__resolve_start links the node.
static int64_t volt__query_attempt(const volt__wait_op *op, volt__node *node, uint8_t was,
                                   volt__wake_list *wakes) {
    (void)op, (void)node, (void)was, (void)wakes;
    VOLT_ASSERT(was == VOLT__FIRED && !((const volt__query *)op->on)->is_listed);
    return 0;
}
// Called under names_lock. Returns the listed query for this host and service, or NULL.
static volt__query *volt__query_find(volt_rt *rt, const char *host, const char *service) {
    volt__query *q = rt->queries;
    while (q && (strcmp(q->host, host) != 0 || strcmp(q->service, service) != 0)) q = q->next;
    return q;
}
#ifdef VOLT_SINGLE_THREAD
// Runs the query at once: it is answered on return.
static int volt__query_submit(volt__query *q) {
    volt__query_run(q);
    return 0;
}
#else
static void volt__query_fail(void *arg, int rc) {
    volt__query_complete((volt__query *)arg, rc);
}
// Returns 0, or -errno if the job will never run.
static int volt__query_submit(volt__query *q) {
    q->job.run_ = volt__query_run;
    q->job.fail_ = volt__query_fail;
    q->job.arg_ = q;
    q->job.lane_ = VOLT__LANE_NAMES;
    return volt__pool_submit(&q->rt->pool, &q->job);
}
#endif
// Joins a listed query, or creates and submits one. Returns 0 if the node waits for a query: it is
// linked, or fired by now. Returns -errno if there is no query to wait for.
static int volt__resolve_start(volt_cx *cx, volt_lookup *l, volt__node *node, const char *host,
                               const char *service) {
    volt_rt *rt = cx->rt_;
    volt__query *fresh = NULL, *q;
    VOLT__REQUIRE_CX(cx, !l->query_, "volt_lookup is in use by another call");
    if (!host || !service || strlen(host) >= sizeof fresh->host ||
        strlen(service) >= sizeof fresh->service)
        return -EINVAL;
    volt__lock(&rt->names_lock);
    if ((q = volt__query_find(rt, host, service)) != NULL)
        volt__query_add_waiter(q, node, cx->task_);
    volt__unlock(&rt->names_lock);
    l->query_ = q;
    if (q) return 0;
    fresh = volt__query_create(rt, host, service);
    if (!fresh) return -ENOMEM;
    volt__lock(&rt->names_lock); // another task may have listed the same name since: both ask
    volt__query_add_waiter(fresh, node, cx->task_);
    fresh->next = rt->queries;
    rt->queries = fresh;
    fresh->is_listed = 1;
    volt__unlock(&rt->names_lock);
    l->query_ = fresh;
    int rc = volt__query_submit(fresh);
    if (rc < 0) volt__query_complete(fresh, rc); // gives rc to all waiters, including this task
    return 0;
}
// Called when the wait has ended, and a result was copied. Abandons the query if it is not answered
// and no waiter is left, and releases the reference of the task.
static void volt__resolve_release(volt_rt *rt, volt_lookup *l) {
    volt__query *q = l->query_;
    int was_cancelled = 0;
    volt__lock(&rt->names_lock);
    int is_abandoned = !q->waiters && q->is_listed;
    if (is_abandoned) volt__query_unlist(q);
    volt__unlock(&rt->names_lock);
#ifndef VOLT_SINGLE_THREAD
    if (is_abandoned) {
        volt__lock(&rt->pool.lock);
        was_cancelled = volt__pool_cancel(&rt->pool, &q->job);
        volt__unlock(&rt->pool.lock);
    }
#endif
    volt__lock(&rt->names_lock);
    // a cancelled job never runs, so its reference is released here
    if (was_cancelled) q->refs--; // the job's
    int is_last = volt__query_release(q);
    volt__unlock(&rt->names_lock);
    l->query_ = NULL;
    if (is_last) volt__query_free(q);
}
// Returns the index of the first address, from index `from` on, that is of this family or, if
// is_of_it is 0, of any other. Returns the number of addresses if there is none.
static size_t volt__names_next(const volt__query *q, size_t from, int family, int is_of_it) {
    size_t n = (size_t)q->rc;
    while (from < n && (volt_addr_family(&q->addr[from]) == family) != is_of_it) from++;
    return from;
}
// Copies at most `cap` addresses, alternately of the family of the first address and of the other
// one, while both have any left. Within a family the order is that of getaddrinfo. Returns the
// number of addresses copied.
static size_t volt__names_interleave(const volt__query *q, volt_addr *out, size_t cap) {
    size_t n = (size_t)q->rc, at[2] = { 0, 0 }, got = 0;
    int family = volt_addr_family(&q->addr[0]);
    for (int is_other = 0; got < cap && (at[0] < n || at[1] < n); is_other = !is_other) {
        at[is_other] = volt__names_next(q, at[is_other], family, !is_other);
        if (at[is_other] < n) out[got++] = q->addr[at[is_other]++];
    }
    return got;
}
// Copies the addresses of an answered query. Returns their number, or -errno.
static int64_t volt__resolve_result(const volt__query *q, volt_addr *out, size_t cap,
                                    int is_interleaved) {
    if (q->rc < 0) return q->rc;
    if (is_interleaved) return (int64_t)volt__names_interleave(q, out, cap);
    size_t n = (size_t)q->rc < cap ? (size_t)q->rc : cap;
    memcpy(out, q->addr, n * sizeof *out);
    return (int64_t)n;
}
static volt_poll volt__resolve(volt_cx *cx, volt_lookup *l, const char *host, const char *service,
                               volt_addr *out, size_t cap, int is_interleaved) {
    volt__wait_op op;
    volt__node *node = volt__leaf_begin(cx, VOLT__LEAF_NAME);
    volt__check_not_on_stack(cx, l);
    volt__check_not_on_stack(cx, out);
    if (!node) return volt_pending();
    if (volt__node_state(node) == VOLT__IDLE) {
        int rc = volt__scope_is_cancelled(cx) ? -ECANCELED
                                              : volt__resolve_start(cx, l, node, host, service);
        if (rc < 0) return volt__leaf_ready(node, rc);
    }
    volt__query *q = l->query_;
    volt__wait_op_init(&op, q, &cx->rt_->names_lock, &q->waiters, volt__query_attempt,
                       volt__abandon_nothing);
    volt_poll p = volt__wait_op_poll(cx, node, &op);
    if (volt_is_pending(p)) return p;
    int64_t rc = volt_value(p);
    if (rc == 0) rc = volt__resolve_result(q, out, cap, is_interleaved);
    volt__resolve_release(cx->rt_, l);
    return volt_ready(rc);
}
VOLT_API volt_poll volt_resolve(volt_cx *cx, volt_lookup *l, const char *host, const char *service,
                                volt_addr *out, size_t cap) {
    return volt__resolve(cx, l, host, service, out, cap, 0);
}

// ---- connection by name
// One attempt for each address, as in RFC 8305: the attempts start in order, and those that have
// started run concurrently. They are the children of one volt_join_any, so the first attempt that
// returns decides the result. Each poll of the task polls all attempts, in order: attempt i is
// polled after those before it have started or failed, so nothing needs to wake it.
#define VOLT__DIAL_STAGGER VOLT_MS(250) // the Connection Attempt Delay of RFC 8305

// Waits until attempt i may start: VOLT__DIAL_STAGGER after the start of attempt i - 1, or as soon
// as any attempt has failed since that start. Attempt 0 starts at once. The timer is armed when
// attempt i is the next one; until then the time is VOLT_NEVER, which arms none.
static volt_poll volt__dial_wait_turn(volt_cx *cx, const volt_dial *d, int i) {
    volt__node *node = volt__leaf(cx, VOLT__LEAF_TIMER);
    int is_next = d->n_started_ == i;
    if (is_next && (i == 0 || d->n_failed_ > d->n_failed_before_) &&
        !volt__scope_is_cancelled(cx)) {
        volt__timer_end_wait(cx, node);
        return volt__leaf_ready(node, 0);
    }
    return volt__sleep_poll(cx, is_next ? d->start_ + VOLT__DIAL_STAGGER : VOLT_NEVER, 0);
}
static void volt__dial_started(volt_dial *d) {
    d->n_started_++;
    d->n_failed_before_ = d->n_failed_;
    d->start_ = VOLT_NOW_NS();
}
// Returns a descriptor. An attempt that fails must not return, since that would decide the result:
// it waits to be cancelled. The last attempt to fail returns its error. An element without an
// address waits to be cancelled, too.
static volt_poll volt__dial_attempt(volt_cx *cx, void *state) {
    volt__dial_arm *a = (volt__dial_arm *)state;
    volt_dial *const d = a->dial_;
    const int i = (int)(a - d->attempt_);
    VOLT_BEGIN(cx, a);
    if (i >= d->n_) VOLT_AWAIT(volt_sleep_forever(cx));
    if (i >= d->n_) VOLT_RETURN(-ECANCELED);
    VOLT_AWAIT(a->rc_, volt__dial_wait_turn(cx, d, i));
    if (a->rc_ < 0) VOLT_RETURN(a->rc_);
    volt__dial_started(d);
    VOLT_AWAIT(a->rc_, volt_connect(cx, &d->addr_[i]));
    if (a->rc_ >= 0 || ++d->n_failed_ == d->n_) VOLT_RETURN(a->rc_);
    VOLT_AWAIT(volt_sleep_forever(cx));
    VOLT_END(-ECANCELED);
}
VOLT_API volt_poll volt_tcp_connect(volt_cx *cx, volt_dial *d, const char *host,
                                    const char *service) {
    VOLT_BEGIN(cx, d);
    VOLT_AWAIT(d->n_,
               volt__resolve(cx, &d->lookup_, host, service, d->addr_, VOLT_DIAL_MAX, 1));
    if (d->n_ < 0) VOLT_RETURN(d->n_);
    d->n_started_ = d->n_failed_ = d->n_failed_before_ = 0;
    for (int i = 0; i < VOLT_DIAL_MAX; i++) d->attempt_[i].dial_ = d;
    VOLT_AWAIT(d->rc_, volt_join_any(cx, VOLT_EACH(volt__dial_attempt, d->attempt_)));
    // rc_: the index of the attempt. The others were cancelled, and have closed their descriptors.
    if (d->rc_ < 0) VOLT_RETURN(d->rc_);
    VOLT_END(volt_result(&d->attempt_[d->rc_].frame));
}
#endif

//==================================================================================================
// >>process  signals, child processes
//==================================================================================================
// Signals are read from a signalfd, and the end of a child from its pidfd: both are descriptors, on
// which volt_io waits. There is no signal handler, and no call that collects other children.
//   - A process is started by a pool thread, in volt__process_spawn: vfork suspends only that
//     thread. The child runs volt__child_exec (>>seam), which reports an error through a
//     close-on-exec pipe.
//   - state_ and pid change under lock_, which volt_process_signal holds as well: so a signal is
//     never sent after the end was collected and the number given to another process.
// Functions with a volt_cx are called in a poll.
#ifndef VOLT_NO_SIGNAL
static int volt__is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGTRAP || signal == SIGSYS || signal == SIGABRT;
}
VOLT_API int volt_signals_open(const int *list, size_t n) {
    sigset_t set, before;
    if (n == 0) return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (list[i] == SIGKILL || list[i] == SIGSTOP || volt__is_fault(list[i])) return -EINVAL;
    if (volt__sys_signal_set(&set, list, n) < 0) return -EINVAL;
    int rc = volt__sys_sigmask(SIG_BLOCK, &set, &before);
    if (rc != 0) return -rc;
    int fd = VOLT_SYS(signalfd, -1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd >= 0) return fd;
    rc = -errno;
    volt__sys_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
static int64_t volt__signals_call(int fd, void *arg) {
    volt_signal_info *out = (volt_signal_info *)arg;
    struct signalfd_siginfo info;
    ssize_t n = VOLT_SYS(read, fd, &info, sizeof info);
    if (n < 0) return -errno;
    if (n != (ssize_t)sizeof info) return -EINVAL; // not a descriptor of volt_signals_open
    if (out) {
        out->number = (int)info.ssi_signo;
        out->code = info.ssi_code;
        out->pid = (int)info.ssi_pid;
        out->uid = info.ssi_uid;
        out->value = info.ssi_int;
        out->pointer = (void *)(uintptr_t)info.ssi_ptr;
    }
    return (int64_t)info.ssi_signo;
}
VOLT_API volt_poll volt_signals_next(volt_cx *cx, int fd, volt_signal_info *out_or_null) {
    volt__check_not_on_stack(cx, out_or_null);
    return volt_io(cx, fd, VOLT_IN, volt__signals_call, out_or_null);
}
#endif

#ifndef VOLT_NO_PROCESS
enum { VOLT__PROCESS_NONE, VOLT__PROCESS_RUNS, VOLT__PROCESS_COLLECTED };

// ---- starting

// The pipe of one standard stream: *ours becomes this end, the result is the child's, or -errno.
static int volt__process_pipe(int i, int *ours) {
    int fd[2];
    if (VOLT_SYS(pipe2, fd, O_CLOEXEC) < 0) return -errno;
    // Our end is no standard stream, not even of a program that has closed these. It alone is
    // non-blocking: programs do not expect that of a standard stream.
    *ours = VOLT_SYS(fcntl, fd[i == 0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int mode = *ours < 0 ? -1 : VOLT_SYS(fcntl, *ours, F_GETFL), error = 0;
    if (mode < 0 || VOLT_SYS(fcntl, *ours, F_SETFL, mode | O_NONBLOCK) < 0) error = errno;
    VOLT_SYS(close, fd[i == 0]);
    if (error == 0) return fd[i != 0];
    VOLT_SYS(close, fd[i != 0]);
    if (*ours >= 0) VOLT_SYS(close, *ours);
    *ours = -1;
    return -error;
}
typedef struct volt__process_fds {
    int ours[3], theirs[3]; // pipes; -1: none
    int null, report[2];    // /dev/null; the pipe on which the child reports an error
} volt__process_fds;
static void volt__process_close_all(volt__process_fds *f, int with_ours) {
    for (int i = 0; i < 3; i++) {
        if (f->theirs[i] >= 0) VOLT_SYS(close, f->theirs[i]);
        if (with_ours && f->ours[i] >= 0) VOLT_SYS(close, f->ours[i]);
    }
    if (f->null >= 0) VOLT_SYS(close, f->null);
    for (int i = 0; i < 2; i++)
        if (f->report[i] >= 0) VOLT_SYS(close, f->report[i]);
}
// Decides which descriptor the child gets as its standard stream i. Returns it, -1 for its own, or
// -errno.
static int volt__process_stdio(volt__process_fds *f, const volt_process_options *o, int i) {
    int kind = i == 0 ? o->in : i == 1 ? o->out : o->err;
    if (kind == VOLT_STDIO_STDOUT && i == 2)
        return f->theirs[1] >= 0 ? f->theirs[1] : o->out > 0 ? o->out
             : o->out == VOLT_STDIO_NULL ? f->null : 1;
    if (kind == VOLT_STDIO_PIPE) return f->theirs[i] = volt__process_pipe(i, &f->ours[i]);
    if (kind == VOLT_STDIO_NULL && f->null < 0) {
        f->null = VOLT_SYS(open, "/dev/null", O_RDWR | O_CLOEXEC);
        if (f->null < 0) return -errno;
    }
    if (kind == VOLT_STDIO_NULL) return f->null;
    return kind > 0 ? kind : kind == 0 ? i : -EINVAL;
}
static int volt__process_prepare(volt__process_fds *f, volt__child *c) {
    const volt_process_options *o = c->options;
    if (!o->argv || !o->argv[0]) return -EINVAL;
    if (o->n_fds > VOLT__CHILD_FDS - 3) return -EINVAL;
    // (unsigned)-1, as from a failed look-up of a user, would leave the child our own ids
    if (o->has_ids && (o->uid == UINT_MAX || o->gid == UINT_MAX)) return -EINVAL;
    for (int i = 0; i < 3; i++) {
        int fd = volt__process_stdio(f, o, i);
        if (fd < 0) return fd;
        // one that this process has closed stays closed
        if (fd == i && VOLT_SYS(fcntl, fd, F_GETFD) < 0) continue;
        c->fd[c->n_fds].here = fd;
        c->fd[c->n_fds++].there = i;
    }
    for (unsigned i = 0; i < o->n_fds; i++) {
        if (o->fds[i].there < 0 || o->fds[i].there == INT_MAX) return -EINVAL;
        c->fd[c->n_fds++] = o->fds[i];
    }
    if (VOLT_SYS(pipe2, f->report, O_CLOEXEC) < 0) return -errno;
    c->report_fd = f->report[1];
    return 0;
}
// Reads the report: nothing, since the pipe was closed by the exec, or an errno. Then the child is
// collected. Returns 0 or -errno.
static int volt__process_report(int fd, int pid) {
    int error = 0;
    ssize_t n;
    do n = VOLT_SYS(read, fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof error) return 0;
    while (VOLT_SYS(waitpid, pid, NULL, 0) < 0 && errno == EINTR) {}
    return -error;
}
// Called by a pool thread, as the fn of volt_blocking.
static int volt__process_spawn(void *arg) {
    volt_process *p = (volt_process *)arg;
    volt__process_fds f = { { -1, -1, -1 }, { -1, -1, -1 }, -1, { -1, -1 } };
    volt__child c;
    memset(&c, 0, sizeof c);
    c.options = p->options_;
    const char *const *envp = c.options->envp_or_null;
    c.envp = envp ? (char *const *)(uintptr_t)envp : environ;
    c.path = volt__sys_path();
    int rc = volt__process_prepare(&f, &c);
    if (rc == 0) rc = VOLT_START_CHILD(&c);
    if (f.report[1] >= 0) VOLT_SYS(close, f.report[1]);
    f.report[1] = -1;
    int pid = rc;
    if (rc > 0) rc = volt__process_report(f.report[0], pid);
    volt__process_close_all(&f, rc < 0);
    if (rc < 0) return rc;
    p->in = f.ours[0];
    p->out = f.ours[1];
    p->err = f.ours[2];
    p->pidfd_ = (int)VOLT_SYS(syscall, VOLT__SYS_PIDFD_OPEN, pid, 0); // -1: see volt__process_wait
    volt__lock(&p->lock_);
    p->pid = pid;
    p->state_ = VOLT__PROCESS_RUNS;
    volt__unlock(&p->lock_);
    return 0;
}
VOLT_API volt_poll volt_process_start(volt_cx *cx, volt_process *p,
                                      const volt_process_options *options) {
    // before the frame is entered, so that a misuse is reported with the line of the caller
    if (cx->frame_ && cx->frame_->kind_ == VOLT__FRESH) {
        VOLT__REQUIRE_CX(cx, p->state_ != VOLT__PROCESS_RUNS,
                         "volt_process_start: the last process was not waited for");
        volt__check_not_on_stack(cx, options);
        volt__check_not_on_stack(cx, options->argv);
    }
    VOLT_BEGIN(cx, p);
    volt__lock(&p->lock_);
    p->pid = 0;
    p->state_ = VOLT__PROCESS_NONE;
    volt__unlock(&p->lock_);
    p->in = p->out = p->err = p->pidfd_ = -1;
    p->options_ = options;
    p->ends_group_ = options->ends_group;
    VOLT_AWAIT(p->rc_, volt_blocking(cx, &p->job_, volt__process_spawn, p));
    p->options_ = NULL;
    VOLT_END(p->rc_);
}

// ---- the end

static void volt__exit_status(volt_exit_status *out, const siginfo_t *info) {
    if (!out) return;
    int is_exit = info->si_code == CLD_EXITED;
    out->code = is_exit ? info->si_status : -1;
    out->signal = is_exit ? 0 : info->si_status;
    out->has_core = info->si_code == CLD_DUMPED;
}
typedef struct volt__process_args {
    volt_process *p;
    volt_exit_status *out;
} volt__process_args;
// Collects the end, if there is one. The number is this child's until then, so that no pidfd is
// needed for it. Returns 0, -EAGAIN or -errno.
static int64_t volt__process_collect(int fd, void *arg) {
    volt__process_args *a = (volt__process_args *)arg;
    volt_process *p = a->p;
    siginfo_t info;
    id_t id = (id_t)p->pid;
    (void)fd;
    memset(&info, 0, sizeof info);
    volt__lock(&p->lock_);
    int rc = VOLT_SYS(waitid, P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ? -errno : 0;
    if (rc == 0 && info.si_pid == 0) rc = -EAGAIN;
    if (rc == 0 && p->ends_group_) VOLT_SYS(kill, -p->pid, SIGKILL);
    if (rc == 0 && VOLT_SYS(waitid, P_PID, id, &info, WEXITED | WNOHANG) < 0) rc = -errno;
    if (rc == 0 || rc == -ECHILD) p->state_ = VOLT__PROCESS_COLLECTED;
    volt__unlock(&p->lock_);
    if (rc == 0) volt__exit_status(a->out, &info);
    return rc;
}
// Where the kernel has no pidfd (before Linux 5.3), the child is asked for again and again. A pool
// thread that waits would be one for each child, of which there may be more than threads.
#define VOLT__PROCESS_TICK VOLT_MS(10)
// Has a frame of its own, so that volt_process_end can wait, too.
static volt_poll volt__process_wait_with(volt_cx *cx, volt_process *p, volt__process_args *args) {
    volt__process_waiter *const waiter = &p->waiter_;
    VOLT_BEGIN(cx, waiter);
    if (p->state_ != VOLT__PROCESS_RUNS) VOLT_RETURN(-ECHILD);
    for (;;) {
        if (p->pidfd_ >= 0)
            VOLT_AWAIT(p->rc_, volt_io(cx, p->pidfd_, VOLT_IN, volt__process_collect, args));
        else p->rc_ = volt__process_collect(-1, args);
        if (p->pidfd_ >= 0 && p->state_ == VOLT__PROCESS_RUNS && p->rc_ != -ECANCELED) {
            volt_close(cx, p->pidfd_); // it cannot be waited for
            p->pidfd_ = -1;
            continue;
        }
        if (p->rc_ != -EAGAIN) break;
        VOLT_AWAIT(p->rc_, volt_sleep(cx, VOLT__PROCESS_TICK));
        if (p->rc_ < 0) break;
    }
    if (p->state_ == VOLT__PROCESS_COLLECTED && p->pidfd_ >= 0) {
        volt_close(cx, p->pidfd_);
        p->pidfd_ = -1;
    }
    VOLT_END(p->rc_);
}
static volt_poll volt__process_wait(volt_cx *cx, volt_process *p, volt_exit_status *out) {
    volt__process_args args = { p, out };
    return volt__process_wait_with(cx, p, &args);
}
VOLT_API volt_poll volt_process_wait(volt_cx *cx, volt_process *p,
                                     volt_exit_status *out_or_null) {
    volt__check_not_on_stack(cx, out_or_null);
    return volt__process_wait(cx, p, out_or_null);
}
VOLT_API int volt_process_signal(volt_process *p, int signal) {
    volt__lock(&p->lock_);
    int rc = -ESRCH;
    if (p->state_ == VOLT__PROCESS_RUNS) rc = VOLT_SYS(kill, p->pid, signal) < 0 ? -errno : 0;
    volt__unlock(&p->lock_);
    return rc;
}
VOLT_API volt_poll volt_process_end(volt_cx *cx, volt_process *p, volt_time grace,
                                    volt_exit_status *out_or_null) {
    VOLT_BEGIN(cx, p);
    if (p->state_ != VOLT__PROCESS_RUNS) VOLT_RETURN(-ECHILD);
    if (grace > 0) {
        (void)volt_process_signal(p, SIGTERM);
        (void)volt_process_signal(p, SIGCONT); // a stopped process handles no other signal
        VOLT_AWAIT(p->rc_, volt_within(cx, &p->limit_, grace,
                                       volt__process_wait(cx, p, out_or_null)));
        if (p->state_ != VOLT__PROCESS_RUNS) VOLT_RETURN(p->rc_);
    }
    (void)volt_process_signal(p, SIGKILL);
    volt_shield_begin(cx, &p->shield_, VOLT_NEVER);
    VOLT_AWAIT(p->rc_, volt__process_wait(cx, p, out_or_null));
    volt_shield_end(cx, &p->shield_);
    VOLT_END(p->rc_);
}
VOLT_API void volt_process_close(volt_cx *cx, volt_process *p) {
    int *const fds[] = { &p->in, &p->out, &p->err };
    for (int i = 0; i < 3; i++) {
        if (*fds[i] > 0) volt_close(cx, *fds[i]);
        *fds[i] = -1;
    }
}
VOLT_API int volt_process_adopt(volt_process *p, int pid) {
    siginfo_t info;
    if (p->state_ == VOLT__PROCESS_RUNS) return -EBUSY;
    if (VOLT_SYS(waitid, P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return -errno;
    memset(p, 0, sizeof *p);
    p->pid = pid;
    p->in = p->out = p->err = -1;
    p->pidfd_ = (int)VOLT_SYS(syscall, VOLT__SYS_PIDFD_OPEN, pid, 0); // -1: see volt_process_wait
    p->state_ = VOLT__PROCESS_RUNS;
    return 0;
}

// ---- capture: four arms, one for each stream and one for the end

// That the process reads no more is no error.
static volt_poll volt__capture_input(volt_cx *cx, volt_capture *c) {
    volt__capture_arm *const arm = &c->state_[0];
    VOLT_BEGIN(cx, arm);
    if (c->process_.in < 0) VOLT_RETURN(0);
    VOLT_AWAIT(arm->rc_, volt_write_all(cx, c->process_.in, c->input, c->n_input));
    volt_close(cx, c->process_.in);
    c->process_.in = -1;
    VOLT_END(arm->rc_ < 0 && arm->rc_ != -EPIPE ? arm->rc_ : 0);
}
// Reads to the end. A full buffer is an error only if there is more.
static volt_poll volt__capture_output(volt_cx *cx, volt_capture *c, int is_err) {
    volt__capture_arm *const arm = &c->state_[1 + is_err];
    int *const fd = is_err ? &c->process_.err : &c->process_.out;
    char *const buf = is_err ? c->err : c->out;
    const size_t cap = is_err ? c->err_cap : c->out_cap;
    size_t *const n = is_err ? &c->n_err : &c->n_out;
    VOLT_BEGIN(cx, arm);
    while (*fd >= 0) {
        if (*n < cap) {
            VOLT_AWAIT(arm->rc_, volt_read(cx, *fd, buf + *n, cap - *n));
        } else {
            char beyond;
            VOLT_AWAIT(arm->rc_, volt_read_ready(cx, *fd));
            if (arm->rc_ == 0) arm->rc_ = volt_try_read(cx, *fd, &beyond, 1);
            if (arm->rc_ == -EAGAIN) continue;
            if (arm->rc_ > 0) arm->rc_ = -EMSGSIZE;
        }
        if (arm->rc_ <= 0) break;
        *n += (size_t)arm->rc_;
    }
    VOLT_END(*fd < 0 ? 0 : arm->rc_);
}
static volt_poll volt__capture_all(volt_cx *cx, volt_capture *c) {
    volt__capture_arm *const arm = &c->state_[3];
    VOLT_BEGIN(cx, arm);
    VOLT_AWAIT(arm->rc_, VOLT_TRY_JOIN_ALL(
        VOLT_ARM(&c->arm_[0], volt__capture_input(cx, c)),
        VOLT_ARM(&c->arm_[1], volt__capture_output(cx, c, 0)),
        VOLT_ARM(&c->arm_[2], volt__capture_output(cx, c, 1)),
        VOLT_ARM(&c->arm_[3], volt_process_wait(cx, &c->process_, &c->end))));
    VOLT_END(arm->rc_);
}
VOLT_API volt_poll volt_capture_run(volt_cx *cx, volt_capture *c,
                                    const volt_process_options *options) {
    VOLT_BEGIN(cx, c);
    c->n_out = c->n_err = 0;
    c->options_ = *options;
    c->options_.in = c->n_input > 0 ? VOLT_STDIO_PIPE : VOLT_STDIO_NULL;
    c->options_.out = VOLT_STDIO_PIPE;
    if (c->err) c->options_.err = VOLT_STDIO_PIPE;
    // so that no grandchild keeps a pipe open when the process has ended
    c->options_.is_group = c->options_.ends_group = 1;
    VOLT_AWAIT(c->rc_, volt_process_start(cx, &c->process_, &c->options_));
    if (c->rc_ < 0) VOLT_RETURN(c->rc_);
    VOLT_AWAIT(c->rc_, volt__capture_all(cx, c));
    if (c->process_.state_ == VOLT__PROCESS_RUNS) {
        volt_shield_begin(cx, &c->shield_, VOLT_NEVER);
        VOLT_AWAIT(volt_process_end(cx, &c->process_, c->grace, &c->end));
        volt_shield_end(cx, &c->shield_);
    }
    volt_process_close(cx, &c->process_);
    VOLT_END(c->rc_);
}
static const char *volt__signal_name(int signal) {
    static const struct {
        int number;
        const char *name;
    } known[] = {
        { SIGHUP, "SIGHUP" },   { SIGINT, "SIGINT" },   { SIGQUIT, "SIGQUIT" },
        { SIGILL, "SIGILL" },   { SIGTRAP, "SIGTRAP" }, { SIGABRT, "SIGABRT" },
        { SIGBUS, "SIGBUS" },   { SIGFPE, "SIGFPE" },   { SIGKILL, "SIGKILL" },
        { SIGUSR1, "SIGUSR1" }, { SIGSEGV, "SIGSEGV" }, { SIGUSR2, "SIGUSR2" },
        { SIGPIPE, "SIGPIPE" }, { SIGALRM, "SIGALRM" }, { SIGTERM, "SIGTERM" },
        { SIGXCPU, "SIGXCPU" }, { SIGXFSZ, "SIGXFSZ" }, { SIGSYS, "SIGSYS" }
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == signal) return known[i].name;
    return "signal ";
}
VOLT_API int volt_exit_text(const volt_exit_status *e, char *buf, size_t len) {
    size_t at = 0;
    if (e->signal == 0) {
        at = volt__append_text(buf, len, 0, "status ");
        at = volt__append_number(buf, len, at, (uint32_t)e->code);
    } else {
        at = volt__append_text(buf, len, 0, volt__signal_name(e->signal));
        if (volt__signal_name(e->signal)[0] == 's') // "signal ", of no name
            at = volt__append_number(buf, len, at, (uint32_t)e->signal);
        if (e->has_core) at = volt__append_text(buf, len, at, ", core dumped");
    }
    if (at >= len) return -ENOSPC;
    buf[at] = 0;
    return (int)at;
}
#endif

//==================================================================================================
// >>inspect  counters, dump
//==================================================================================================
// Counters of a runtime, and dumps of its tasks and workers, as text or JSON, while it runs.
//   - The counters of a worker are as of its last volt__publish_stats. If the calling thread
//     carries the worker, it publishes them first, so that they are exact. `queued` is a hint.
//   - A dump allocates nothing, uses no stdio, and calls `put` without a lock.
//   - A dump copies tasks in batches, under slabs.lock. Between two batches slabs may be created
//     and destroyed, so the position is kept as the serial number of a slab and a slot. The list of
//     slabs has the newest first, so serial numbers fall along it: a dump goes on at the first slab
//     whose number is not above that of its position, and skips slabs created while it runs.
//   - A task may run while its fields are copied, so they need not be of the same moment.
// Any thread may call these functions, except volt_name, which a task calls for itself. With
// VOLT_DUMP_CRASH a dump waits for no lock, so that a signal handler may call it. In a forked child
// dumps and volt_worker_stats return -ECHILD, and volt_stats gives zeros.
static void volt__stats_add(volt__worker *w, volt_counters *out) {
    if (VOLT_TLS_GET() == w) volt__publish_stats(w); // only the carrier of w may do that
    volt__lock(&w->stats_lock);
#define VOLT__COUNTER_SUM(name_, text_) out->name_ += w->published.name_;
    VOLT__COUNTERS(VOLT__COUNTER_SUM)
#undef VOLT__COUNTER_SUM
    volt__unlock(&w->stats_lock);
    out->queued += volt__queued_at(w);
}
VOLT_API int volt_worker_stats(volt_rt *rt, uint32_t worker, volt_counters *out) {
    memset(out, 0, sizeof *out);
    if (volt__is_forked_child(rt)) return -ECHILD; // a lock may have been held at the fork
    if (worker >= volt__started(rt)) return -ENOENT;
    volt__stats_add(rt->workers[worker], out);
    return 0;
}
VOLT_API void volt_stats(volt_rt *rt, volt_counters *out) {
    memset(out, 0, sizeof *out);
    if (volt__is_forked_child(rt)) return;
    uint32_t started = volt__started(rt);
    for (uint32_t i = 0; i < started; i++) volt__stats_add(rt->workers[i], out);
    uint64_t n_ended;
    out->spawned += volt__count_outside(rt, started, &n_ended);
    out->completed += n_ended;
    out->workers = rt->n_workers;
    out->workers_started = started;
    out->queued += volt__load_rlx(&rt->injector.len); // rlx: hint
#ifndef VOLT_SINGLE_THREAD
    volt__lock(&rt->pool.lock);
    out->blocking_threads = rt->pool.n_threads;
    out->blocking_idle = rt->pool.n_idle;
    out->blocking_queued = rt->pool.n_queued;
    out->blocking_jobs = rt->pool.n_jobs;
    volt__unlock(&rt->pool.lock);
#endif
}

// ---- snapshots of tasks
// A copy of fields of one task's header. `serial` and `slot` are the id of the task: the serial
// number of its slab, and its slot in carve order.
typedef struct volt__task_snapshot {
    uint32_t serial, slot;
    uintptr_t word;
    const char *spawn_site, *wait_site;
    uint32_t wait, wait_ms, spawn_ms;
} volt__task_snapshot;
enum { VOLT__DUMP_BATCH = 64 };
// The position of a walk, behind this slot of the slab with this serial number. `slab` is the slab
// to go on at, or NULL at the start. It still exists if n_destroyed is that of the runtime's slabs.
typedef struct volt__cursor {
    uint32_t serial, slot, n_destroyed;
    const volt__slab *slab;
} volt__cursor;
static void volt__snapshot_take(volt__task_snapshot *to, const volt__slab *s, uint32_t slot,
                                const volt__task *t, uintptr_t word) {
    to->serial = s->serial;
    to->slot = slot;
    to->word = word;
    to->spawn_site = volt__load_rlx(&t->spawn_site); // rlx: a snapshot; the address of a literal
    to->wait_site = volt__load_rlx(&t->wait_site);   // rlx: a snapshot; the address of a literal
    to->wait = volt__load_rlx(&t->wait);             // rlx: a snapshot
    to->wait_ms = volt__load_rlx(&t->wait_ms);       // rlx: a snapshot
    to->spawn_ms = volt__load_rlx(&t->spawn_ms);     // rlx: a snapshot
}
// Called under slabs.lock. Appends the tasks of `s` that lie behind the position *at to `out`,
// which holds n tasks, until the batch is full. Moves *at to the last slot visited. Returns the new
// number of tasks. A task that has ended is included while it has references.
static uint32_t volt__snapshot_slab(const volt__slab *s, volt__cursor *at, volt__task_snapshot *out,
                                    uint32_t n) {
    uint32_t carved = volt__load_acq(&s->carved); // [M2] with carve
    uint32_t i = s->serial == at->serial ? at->slot + 1 : 0;
    for (; i < carved && n < VOLT__DUMP_BATCH; i++) {
        volt__task *t = volt__slab_slot((volt__slab *)(uintptr_t)s, i);
        uintptr_t word = volt__load_acq(&t->word); // [M2] with task init
        at->serial = s->serial;
        at->slot = i;
        if (word >= VOLT__REF) volt__snapshot_take(&out[n++], s, i, t, word);
    }
    return n;
}
// Sets *at to the start: no slab has a serial number above it.
static void volt__snapshot_begin(volt__cursor *at) {
    memset(at, 0, sizeof *at);
    at->serial = at->slot = UINT32_MAX;
    at->slot--; // slot + 1 must not wrap to 0: it is then no valid slot
}
// Copies the next batch of tasks to `out`. Returns their number, which is 0 only at the end; with
// VOLT_DUMP_CRASH -EBUSY if slabs.lock is held.
static int volt__snapshot_next(volt__slabs *all, volt__cursor *at, volt__task_snapshot *out,
                               unsigned flags) {
    uint32_t n = 0;
    if (!(flags & VOLT_DUMP_CRASH)) volt__lock(&all->lock);
    else if (!volt__try_lock(&all->lock)) return -EBUSY;
    // Starting at the first slab each time would pass over all slabs for each batch.
    const volt__slab *s = at->slab && at->n_destroyed == all->n_destroyed ? at->slab : all->first;
    for (; s && n < VOLT__DUMP_BATCH; s = s->all_next) {
        if (s->serial > at->serial) continue;
        n = volt__snapshot_slab(s, at, out, n);
        at->slab = s;
    }
    at->n_destroyed = all->n_destroyed;
    volt__unlock(&all->lock);
    return (int)n;
}

// ---- buffered output
// Text is collected in a buffer and passed to `put`, which is not called again once it has failed.
typedef struct volt__out {
    int (*put)(void *user, const char *text, size_t len);
    void *user;
    int rc;                    // the first negative result of `put`, else 0
    uint32_t is_json, n_items; // n_items: entries so far in the current list
    size_t n;                  // bytes in the buffer
    char text[1024];
} volt__out;
static void volt__out_flush(volt__out *o) {
    if (o->rc == 0) o->rc = o->put(o->user, o->text, o->n);
    if (o->rc > 0) o->rc = 0;
    o->n = 0;
}
static void volt__out_char(volt__out *o, char c) {
    if (o->n == sizeof o->text) volt__out_flush(o);
    o->text[o->n++] = c;
}
static void volt__out_text(volt__out *o, const char *text) {
    for (; *text; text++) volt__out_char(o, *text);
}
static void volt__out_number(volt__out *o, uint64_t x) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do digits[--at] = (char)('0' + x % 10);
    while ((x /= 10) != 0);
    volt__out_text(o, digits + at);
}
// Returns the length of the UTF-8 character at `text`, or 0 if there is no valid one that ends
// before `end` or, if that is NULL, before the terminating 0.
static size_t volt__utf8_len(const char *text, const char *end) {
    // the range of the second byte depends on the lead byte: no overlong forms, no surrogates,
    // nothing above U+10FFFF
    unsigned char c = (unsigned char)text[0];
    unsigned low = c == 0xe0 ? 0xa0u : c == 0xf0 ? 0x90u : 0x80u;
    unsigned high = c == 0xed ? 0x9fu : c == 0xf4 ? 0x8fu : 0xbfu;
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++) {
        unsigned char next = (unsigned char)text[i];
        if (text + i == end || next < low || next > high) return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}
// Writes the text up to `end`, or all of it if that is NULL, as a JSON string. File names may hold
// any bytes: each byte that is not part of valid UTF-8 is replaced by U+FFFD.
static void volt__out_quoted(volt__out *o, const char *text, const char *end) {
    static const char hex[] = "0123456789abcdef";
    volt__out_char(o, '"');
    for (size_t n; *text && text != end; text += n) {
        unsigned char c = (unsigned char)*text;
        n = volt__utf8_len(text, end);
        if (n == 0) {
            volt__out_text(o, "\\ufffd");
            n = 1;
            continue;
        }
        if (c < 32) {
            volt__out_text(o, "\\u00");
            volt__out_char(o, hex[c >> 4]);
            volt__out_char(o, hex[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\') volt__out_char(o, '\\');
        for (size_t i = 0; i < n; i++) volt__out_char(o, text[i]);
    }
    volt__out_char(o, '"');
}
// Writes a decimal fraction, such as 12.345.
static void volt__out_fraction(volt__out *o, uint64_t thousandths) {
    volt__out_number(o, thousandths / 1000);
    volt__out_char(o, '.');
    for (uint64_t unit = 100; unit > 0; unit /= 10)
        volt__out_char(o, (char)('0' + thousandths / unit % 10));
}
// Begins the next entry of a list: JSON puts a comma between two entries.
static void volt__out_item(volt__out *o) {
    if (o->is_json) volt__out_text(o, o->n_items ? ",\n" : "\n");
    o->n_items++;
}
// Begins the next member of a JSON object that has one already.
static void volt__out_key(volt__out *o, const char *key) {
    volt__out_text(o, ",\"");
    volt__out_text(o, key);
    volt__out_text(o, "\":");
}
// Writes the id of a task: the serial number of its slab, a dot and its slot.
static void volt__out_id(volt__out *o, uint64_t serial, uint64_t slot) {
    volt__out_number(o, serial);
    volt__out_char(o, '.');
    volt__out_number(o, slot);
}

// ---- dump
// A dump has the same contents as text and as JSON. A value follows `label` in text, `key` in JSON.
static void volt__dump_label(volt__out *o, const char *label, const char *key) {
    if (o->is_json) volt__out_key(o, key);
    else volt__out_text(o, label);
}
// Writes the text up to `end`, or all of it if that is NULL.
static void volt__dump_text(volt__out *o, const char *text, const char *end) {
    if (o->is_json) volt__out_quoted(o, text, end);
    else for (; *text && text != end; text++) volt__out_char(o, *text);
}
// Writes a time: as JSON in ms, as text in seconds and with `trail` behind it.
static void volt__dump_ms(volt__out *o, uint32_t ms, const char *trail) {
    if (o->is_json) {
        volt__out_number(o, ms);
        return;
    }
    volt__out_fraction(o, ms);
    volt__out_text(o, trail);
}
// `wait`: the kind of the leaf, shifted left by 24, and its argument, such as a descriptor; bit 31
// is VOLT__REQUEUE. A task that waits for several leaves shows the last that was found pending.
// A task that waits for a waker alone has no leaf.
static const char *volt__wait_text(uint32_t wait, int *has_fd) {
#define VOLT__LEAF_TEXT(name_, text_, has_fd_) { text_, has_fd_ },
    static const struct {
        char text[sizeof "back-off"];
        uint8_t has_fd;
    } leaves[] = { VOLT__LEAVES(VOLT__LEAF_TEXT) };
#undef VOLT__LEAF_TEXT
    uint32_t i = (wait >> 24 & 127) - VOLT__LEAF;
    int is_known = i < sizeof leaves / sizeof leaves[0];
    *has_fd = is_known ? leaves[i].has_fd : 0;
    return is_known ? leaves[i].text : "waker";
}
static const char *volt__snapshot_state(const volt__task_snapshot *t) {
    if (t->word & VOLT__COMPLETE) return "ended";
    if (t->word & VOLT__RUNNING) return "running";
    return t->word & VOLT__NOTIFIED ? "queued" : "waiting";
}
// spawn_site is "file:line", a tab and the name of a function; or a name alone, such as that of
// volt_name, or "root task". Returns the name. *site_end receives the end of "file:line", or
// spawn_site if there is none.
static const char *volt__snapshot_name(const volt__task_snapshot *t, const char **site_end) {
    const char *tab = strchr(t->spawn_site, '\t');
    *site_end = tab ? tab : t->spawn_site;
    return tab ? tab + 1 : t->spawn_site;
}
// Returns 1 if wait_site is the site of an await. Until the first one, wait_site is what spawn_site
// was at the spawn: the same pointer or, if volt_name has replaced spawn_site, a text with a tab.
static int volt__snapshot_has_waited(const volt__task_snapshot *t) {
    return t->wait_site != t->spawn_site && !strchr(t->wait_site, '\t');
}
// The time since the wait began. It wraps with the mark: after 2^32 ms, 2^31 ms with VOLT_TRACE.
static uint32_t volt__snapshot_waited_ms(const volt__task_snapshot *t, uint32_t now) {
    return (volt__wait_mark(now) - t->wait_ms) >> VOLT__WAIT_SHIFT;
}
static void volt__dump_wait(volt__out *o, const volt__task_snapshot *t, uint32_t now) {
    int has_fd;
    volt__dump_label(o, " for ", "for");
    volt__dump_text(o, volt__wait_text(t->wait, &has_fd), NULL);
    if (has_fd) {
        volt__dump_label(o, " fd ", "fd");
        volt__out_number(o, t->wait & 0xffffff);
    }
    volt__dump_label(o, ", ", "since_ms");
    volt__dump_ms(o, volt__snapshot_waited_ms(t, now), " s");
}
// now: ms since the epoch, modulo 2^32, as is spawn_ms.
static void volt__dump_task(volt__out *o, const volt__task_snapshot *t, uint32_t now) {
    const char *site_end, *name = volt__snapshot_name(t, &site_end),
                          *state = volt__snapshot_state(t);
    volt__out_text(o, o->is_json ? "{\"id\":\"" : "task ");
    volt__out_id(o, t->serial, t->slot);
    if (o->is_json) volt__out_char(o, '"');
    volt__dump_label(o, " ", "name");
    volt__dump_text(o, name, NULL);
    volt__dump_label(o, ", ", "age_ms");
    volt__dump_ms(o, now - t->spawn_ms, " s old");
    if (site_end != t->spawn_site) {
        volt__dump_label(o, ", spawned at ", "spawned");
        volt__dump_text(o, t->spawn_site, site_end);
    }
    volt__dump_label(o, ": ", "state");
    volt__dump_text(o, state, NULL);
    if (volt__snapshot_has_waited(t)) {
        volt__dump_label(o, " at ", "at");
        volt__dump_text(o, t->wait_site, NULL);
    }
    if (state[0] == 'w') volt__dump_wait(o, t, now);
    volt__out_char(o, o->is_json ? '}' : '\n');
}
static void volt__dump_worker(volt__out *o, const volt_rt *rt, uint32_t i) {
    int is_asleep = volt__idle_is_parked(&rt->idle, i);
    int is_blocked = volt__worker_load(rt, i) == UINT32_MAX;
    volt__out_text(o, o->is_json ? "{\"worker\":" : "worker ");
    volt__out_number(o, i);
    volt__dump_label(o, ": ", "state");
    volt__dump_text(o, is_blocked ? "blocked" : is_asleep ? "asleep" : "awake", NULL);
    volt__dump_label(o, ", queued ", "queued");
    volt__out_number(o, volt__queued_at(rt->workers[i]));
    volt__out_char(o, o->is_json ? '}' : '\n');
}
// Returns 0, or -EBUSY if slabs.lock is held (VOLT_DUMP_CRASH). Stops if `put` fails.
static int volt__dump_tasks(volt__out *o, volt_rt *rt, unsigned flags) {
    volt__task_snapshot batch[VOLT__DUMP_BATCH];
    volt__cursor at;
    int n;
    volt__snapshot_begin(&at);
    while ((n = volt__snapshot_next(&rt->slabs, &at, batch, flags)) > 0 && o->rc == 0) {
        uint32_t now = (uint32_t)volt__ms_floor(rt, VOLT_NOW_NS());
        for (int i = 0; i < n; i++) {
            volt__out_item(o);
            volt__dump_task(o, &batch[i], now);
        }
    }
    return n < 0 ? n : 0;
}
VOLT_API int volt_dump_to(volt_rt *rt, int (*put)(void *user, const char *text, size_t len),
                          void *user, unsigned flags) {
    volt__out o;
    if (volt__is_forked_child(rt)) return -ECHILD;
    memset(&o, 0, offsetof(volt__out, text));
    o.put = put;
    o.user = user;
    o.is_json = flags & VOLT_DUMP_JSON;
    if (o.is_json) volt__out_text(&o, "{\"workers\":[");
    for (uint32_t i = 0, n = volt__started(rt); i < n; i++) {
        volt__out_item(&o);
        volt__dump_worker(&o, rt, i);
    }
    if (o.is_json) volt__out_text(&o, "],\n\"tasks\":[");
    o.n_items = 0;
    int rc = volt__dump_tasks(&o, rt, flags);
    if (o.is_json) volt__out_text(&o, "]}\n");
    volt__out_flush(&o);
    return o.rc < 0 ? o.rc : rc;
}

// ---- dump to a descriptor
// A pipe without a reader must not kill the process, so SIGPIPE is suppressed. A full non-blocking
// descriptor must not cut the dump short, so the writer waits for it. The wait is bounded, because
// the descriptor may never become writable.

// Returns 0 if a write to fd would not block, -EAGAIN after VOLT__DUMP_STALL_MS, or another -errno.
enum { VOLT__DUMP_STALL_MS = 1000 };
static int volt__dump_await_writable(int fd) {
    volt_time deadline = volt__time_add(VOLT_NOW_NS(), VOLT_MS(VOLT__DUMP_STALL_MS)), left;
    struct pollfd p;
    int rc;
    p.fd = fd;
    p.events = POLLOUT;
    do {
        left = deadline - VOLT_NOW_NS();
        p.revents = 0;
        rc = VOLT_SYS(poll, &p, 1, left > 0 ? (int)(left / 1000000) : 0);
    } while (rc < 0 && errno == EINTR && left > 0);
    if (rc < 0 && errno != EINTR) return -errno;
    return rc > 0 ? 0 : -EAGAIN;
}
static int volt__dump_write(int fd, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = VOLT_SYS(write, fd, text, len);
        if (n >= 0) {
            text += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            int rc = volt__dump_await_writable(fd);
            if (rc < 0) return rc;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}
static int volt__dump_write_fd(void *user, const char *text, size_t len) {
    volt__sigpipe held;
    volt__sys_sigpipe_block(&held);
    int rc = volt__dump_write(*(int *)user, text, len);
    volt__sys_sigpipe_unblock(&held, rc == -EPIPE);
    return rc;
}
VOLT_API int volt_dump(volt_rt *rt, int fd, unsigned flags) {
    return volt_dump_to(rt, volt__dump_write_fd, &fd, flags);
}
VOLT_API void volt_name(volt_cx *cx, const char *name) {
    if (name) volt__store_rlx(&cx->task_->spawn_site, name); // rlx: for dumps
}

//==================================================================================================
// >>export  the trace as JSON for Chrome's viewer and Perfetto; histograms, health
//==================================================================================================
// The results of VOLT_TRACE: the events in Chrome's trace format, the sums of the histograms, and
// the health report. Without VOLT_TRACE all functions return -ENOSYS.
//   - The JSON has one track for each worker, numbered by the index of the worker, and a last one
//     for all threads that are not workers.
//   - The events of a track are copied under the lock of its trace, and written without a lock.
//     Tracks are copied one after the other, so they end at different moments.
//   - A trace keeps the last VOLT_TRACE_CAP events, so it may begin with the end of a poll or of a
//     sleep. Such an end is left out of the JSON.
// Any thread may call the volt_ functions. `put` is called without a lock. In a forked child they
// return -ECHILD.
#if VOLT_TRACE
// Writes a quote and the id of a task. The caller writes the closing quote.
static void volt__trace_json_id(volt__out *o, const volt_trace_event *e) {
    volt__out_char(o, '"');
    volt__out_id(o, e->task >> 32, e->task & UINT32_MAX);
}
// Begins an event: {"ph":"B","pid":1,"tid":0,"ts":12.345 where `at` is in ns, and ts in us. The
// caller adds to the object and closes it.
static void volt__trace_json_head(volt__out *o, const char *phase, uint32_t tid, int64_t at) {
    volt__out_item(o);
    volt__out_text(o, "{\"ph\":");
    volt__out_quoted(o, phase, NULL);
    volt__out_text(o, ",\"pid\":1,\"tid\":");
    volt__out_number(o, tid);
    volt__out_text(o, ",\"ts\":");
    volt__out_fraction(o, (uint64_t)at);
}
static void volt__trace_json_named(volt__out *o, const char *name, const char *site) {
    volt__out_key(o, "name");
    volt__out_quoted(o, name, NULL);
    if (!site) return;
    volt__out_text(o, ",\"args\":{\"at\":");
    volt__out_quoted(o, site, NULL);
    volt__out_char(o, '}');
}
// Writes one end of an arrow: phase "s" at a wake-up, "f" at the poll that it causes. Both ends
// have the same id: that of the task, and the stamp of the wake-up, e->n. With "bp":"e" the arrow
// ends at the poll that has just begun; without it viewers end it at the next one.
static void volt__trace_json_arrow(volt__out *o, const volt_trace_event *e, const char *phase,
                                   uint32_t tid) {
    volt__trace_json_head(o, phase, tid, e->at);
    volt__out_text(o, ",\"cat\":\"wake\",\"name\":\"wake\",\"bp\":\"e\",\"id\":");
    volt__trace_json_id(o, e);
    volt__out_char(o, '.');
    volt__out_number(o, e->n);
    volt__out_text(o, "\"}");
}
// *depth is the number of events of the track that have begun and not ended.
static void volt__trace_json_event(volt__out *o, const volt_trace_event *e, uint32_t tid,
                                   int *depth) {
    int is_begin = e->kind == VOLT_TRACE_POLL || e->kind == VOLT_TRACE_PARK;
    if (e->kind == VOLT_TRACE_WAKE) {
        volt__trace_json_arrow(o, e, "s", tid);
        return;
    }
    if (e->kind == VOLT_TRACE_STEAL) {
        volt__trace_json_head(o, "i", tid, e->at);
        volt__out_text(o, ",\"s\":\"t\",\"name\":\"steal\",\"args\":{\"tasks\":");
        volt__out_number(o, e->n);
        volt__out_text(o, "}}");
        return;
    }
    if (!is_begin && *depth == 0) return; // its begin event has been overwritten
    *depth += is_begin ? 1 : -1;
    volt__trace_json_head(o, is_begin ? "B" : "E", tid, e->at);
    if (e->kind == VOLT_TRACE_PARK) volt__trace_json_named(o, "asleep", NULL);
    if (e->kind == VOLT_TRACE_POLL) volt__trace_json_named(o, e->name, e->site);
    volt__out_char(o, '}');
    if (e->kind == VOLT_TRACE_POLL) volt__trace_json_arrow(o, e, "f", tid);
}
// Writes the events of a trace as the track `tid`. *copy is scratch memory, since a trace is too
// large for the stack.
static void volt__trace_json_track(volt__out *o, volt__trace *trace, volt__trace *copy,
                                   uint32_t tid, const char *name) {
    int depth = 0;
    volt__lock(&trace->lock);
    copy->n = trace->n; // not *copy = *trace: other threads may be changing the lock in it
    memcpy(copy->event, trace->event, sizeof copy->event);
    volt__unlock(&trace->lock);
    volt__trace_json_head(o, "M", tid, 0);
    volt__out_text(o, ",\"name\":\"thread_name\",\"args\":{\"name\":");
    volt__out_quoted(o, name, NULL);
    volt__out_text(o, "}}");
    uint64_t first = copy->n > VOLT_TRACE_CAP ? copy->n - VOLT_TRACE_CAP : 0;
    for (uint64_t i = first; i < copy->n; i++) {
        volt_trace_event *e = &copy->event[i & (VOLT_TRACE_CAP - 1)];
        volt__trace_event_clean(e);
        volt__trace_json_event(o, e, tid, &depth);
    }
}
VOLT_API int volt_trace_to(volt_rt *rt, int (*put)(void *user, const char *text, size_t len),
                           void *user) {
    volt__out o;
    if (volt__is_forked_child(rt)) return -ECHILD;
    volt_allocator *a = &rt->cfg.alloc;
    volt__trace *copy = (volt__trace *)a->alloc(a->user, sizeof *copy, VOLT__CACHE_LINE_PAIR);
    if (!copy) return -ENOMEM;
    memset(&o, 0, offsetof(volt__out, text));
    o.put = put;
    o.user = user;
    o.is_json = 1;
    volt__out_text(&o, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    uint32_t n = volt__started(rt);
    for (uint32_t i = 0; i < n; i++)
        volt__trace_json_track(&o, &rt->workers[i]->trace, copy, i, "worker");
    volt__trace_json_track(&o, &rt->outside_trace, copy, n, "outside");
    volt__out_text(&o, "]}\n");
    volt__out_flush(&o);
    a->free(a->user, copy, sizeof *copy);
    return o.rc < 0 ? o.rc : 0;
}
VOLT_API int volt_histograms(volt_rt *rt, volt_latency_histograms *out) {
    memset(out, 0, sizeof *out);
    if (volt__is_forked_child(rt)) return -ECHILD;
    for (uint32_t i = 0, n = volt__started(rt); i < n; i++) {
        volt__trace *trace = &rt->workers[i]->trace;
        volt__lock(&trace->lock);
        for (int k = 0; k < VOLT_HISTOGRAM; k++) {
            out->poll[k] += trace->histograms.poll[k];
            out->wait[k] += trace->histograms.wait[k];
        }
        volt__unlock(&trace->lock);
    }
    return 0;
}
// Finds the longest poll in progress. A poll that has begun since `now` was read has a negative age
// here, so it is not reported.
static void volt__health_polls(volt_rt *rt, volt_health_report *out) {
    for (uint32_t i = 0, n = volt__started(rt); i < n; i++) {
        volt__trace *trace = &rt->workers[i]->trace;
        int64_t now = VOLT_NOW_NS();
        volt__lock(&trace->lock);
        if (trace->poll_since > 0 && now - trace->poll_since > out->longest_poll) {
            out->longest_poll = now - trace->poll_since;
            out->site = trace->poll_site;
        }
        volt__unlock(&trace->lock);
    }
    // In the first poll of a task it is that of the spawn: with a tab, or a name without a line.
    if (out->site && (strchr(out->site, '\t') || !strchr(out->site, ':'))) out->site = NULL;
}
VOLT_API int volt_health(volt_rt *rt, volt_health_report *out) {
    volt__task_snapshot batch[VOLT__DUMP_BATCH];
    volt__cursor at;
    int n;
    memset(out, 0, sizeof *out);
    if (volt__is_forked_child(rt)) return -ECHILD;
    volt__health_polls(rt, out);
    volt__snapshot_begin(&at);
    while ((n = volt__snapshot_next(&rt->slabs, &at, batch, 0)) > 0) {
        int64_t now = VOLT_NOW_NS();
        for (int i = 0; i < n; i++) {
            // 'q': queued. Bit 0 clear: the task was just woken, and the stamp is not written yet
            if (volt__snapshot_state(&batch[i])[0] != 'q' || !(batch[i].wait_ms & 1)) continue;
            int64_t age = volt__trace_since(batch[i].wait_ms, now);
            if (age > out->oldest_runnable) out->oldest_runnable = age;
        }
    }
    return 0;
}
#else
VOLT_API int volt_health(volt_rt *rt, volt_health_report *out) {
    (void)rt;
    memset(out, 0, sizeof *out);
    return -ENOSYS;
}
VOLT_API int volt_trace_to(volt_rt *rt, int (*put)(void *user, const char *text, size_t len),
                           void *user) {
    (void)rt, (void)put, (void)user;
    return -ENOSYS;
}
VOLT_API int volt_histograms(volt_rt *rt, volt_latency_histograms *out) {
    (void)rt;
    memset(out, 0, sizeof *out);
    return -ENOSYS;
}
#endif
VOLT_API int volt_trace(volt_rt *rt, int fd) { return volt_trace_to(rt, volt__dump_write_fd, &fd); }

//==================================================================================================
// >>public  run, create, block_on, shutdown, destroy
//==================================================================================================
// The functions that create, run, shut down and free a runtime, and the steps of a guest.
//   - The thread that calls volt_run carries worker 0. In a runtime of volt_create, worker 0 has a
//     thread of its own or is a guest.
//   - A runtime is taken down in this order: all tasks end and is_stopped is set (>>shutdown), the
//     worker threads are joined, the pool is closed, all pins are released, the memory is freed.
//     volt_run takes all these steps. Otherwise volt_shutdown takes the first three, and
//     volt_destroy the others.
//   - A runtime is not freed while it has tasks, nor while a handle or waker refers to one that has
//     ended. volt_destroy then returns -EBUSY, and volt_run leaks the runtime.
// Any thread may call these functions, with these restrictions. On a thread that carries a worker,
// of any runtime, volt_run, volt_block_on and volt_rt_step return -EDEADLK, and volt_shutdown does
// not wait. One thread at a time makes a step of a guest; others get -EBUSY. volt_rt_deadline reads
// the guest without a lock, so it is called between two steps. volt_destroy follows a volt_shutdown
// that returned 0. In a forked child, volt_shutdown, volt_destroy, volt_block_on and volt_rt_step
// return -ECHILD for a runtime of its parent.
VOLT_API volt_rt *volt_cx_rt(const volt_cx *cx) { return cx->rt_; }
VOLT_API void volt_effective_config(const volt_rt *rt, volt_config *out) { *out = rt->cfg; }

// Returns the result, or the nearest int.
static int volt__to_int(int64_t result) {
    return result > INT_MAX ? INT_MAX : result < INT_MIN ? INT_MIN : (int)result;
}
#ifdef VOLT_SINGLE_THREAD
static void volt__join_threads(volt_rt *rt) {
    volt__store_rel(&rt->join_state, 2); // [S1] with destroy
}
static uint32_t volt__close_pool(volt_rt *rt, volt_time deadline) {
    (void)rt, (void)deadline;
    return 0;
}
static int volt__is_pool_busy(volt_rt *rt) {
    (void)rt;
    return 0;
}
#else
// Called after is_stopped is set. Waits until all worker threads have exited. The first caller
// joins them, the others wait for that caller. join_state: 0, then 1, then 2 once all are joined.
static void volt__join_threads(volt_rt *rt) {
    uint32_t not_yet = 0;
    if (volt__cas_acq_rel(&rt->join_state, &not_yet, 1)) { // [S1] one joins
        for (uint32_t i = 0, n = volt__started(rt); i < n; i++)
            if (rt->workers[i]->has_thread) VOLT_THREAD_JOIN(rt->workers[i]->thread);
        volt__store_rel(&rt->join_state, 2); // [S1] with the waiters below
        VOLT_FUTEX_WAKE(&rt->join_state, INT_MAX);
    }
    // [S1] with the store of 2
    while (volt__load_acq(&rt->join_state) != 2) VOLT_FUTEX_WAIT(&rt->join_state, 1, VOLT_NEVER);
}
// Called after all workers have stopped: no task is left to submit a job. Waits until the threads
// of the pool have exited. Returns 0, or at the deadline the number of jobs that still run; 1 if
// another thread is still closing the pool. `close` is NULL if the pool was never used.
static uint32_t volt__close_pool(volt_rt *rt, volt_time deadline) {
    return rt->pool.close ? rt->pool.close(&rt->pool, deadline) : 0;
}
// Returns 1 if the pool was used and is not closed yet.
static int volt__is_pool_busy(volt_rt *rt) {
    return rt->pool.close && !volt__load_acq(&rt->pool.is_closed); // [H2] with close
}
#endif

// The tasks that a shutdown has left: those that have not ended, and the held tasks, which have
// ended but still have a handle or a waker. The sites are those of the first 16 of each kind.
typedef struct volt__unfinished {
    const char *site[16], *held_site[16]; // where tasks wait; where held tasks were spawned
    uint32_t n, n_held; // tasks that have not ended, counted up to 16; held tasks, all counted
} volt__unfinished;
// Called under slabs.lock. Only reads the task: at the deadline some workers may not have seen the
// shutdown yet, and still treat the words of their tasks as private.
static void volt__unfinished_add(void *arg, volt__task *t) {
    volt__unfinished *unfinished = (volt__unfinished *)arg;
    uintptr_t word = volt__load_acq(&t->word); // [M2] with task init
    if (word < VOLT__REF) return;
    if (word & VOLT__COMPLETE) {
        if (unfinished->n_held < sizeof unfinished->held_site / sizeof unfinished->held_site[0])
            // rlx: a snapshot of a literal's address
            unfinished->held_site[unfinished->n_held] = volt__load_rlx(&t->spawn_site);
        unfinished->n_held++;
    } else if (unfinished->n < sizeof unfinished->site / sizeof unfinished->site[0])
        // rlx: a snapshot of a literal's address
        unfinished->site[unfinished->n++] = volt__load_rlx(&t->wait_site);
}
static void volt__unfinished_find(volt_rt *rt, volt__unfinished *unfinished) {
    memset(unfinished, 0, sizeof *unfinished);
    volt__slabs_walk(&rt->slabs, volt__unfinished_add, unfinished);
}
// Logs where the first 16 of the tasks that have not ended wait.
static void volt__log_alive(volt_rt *rt) {
    volt__unfinished unfinished;
    volt__unfinished_find(rt, &unfinished);
    for (uint32_t i = 0; i < unfinished.n; i++)
        volt__log(rt, VOLT_LOG_STILL_ALIVE, unfinished.site[i]);
}
// Logs the number of held tasks, and where the first of them were spawned.
static void volt__log_held(volt_rt *rt, const volt__unfinished *unfinished) {
    if (unfinished->n_held == 0) return;
    volt__log_number(rt, VOLT_LOG_HANDLE_LEAKED, NULL, unfinished->n_held, " tasks are held");
    for (uint32_t i = 0; i < unfinished->n_held &&
         i < sizeof unfinished->held_site / sizeof unfinished->held_site[0]; i++)
        volt__log(rt, VOLT_LOG_HANDLE_LEAKED, unfinished->held_site[i]);
}
// Called by a thread that carries no worker. Returns 0, or at the deadline the number of tasks
// alive, at least 1. If the runtime has stopped, returns the number of jobs that still run in the
// pool at the deadline.
static int volt__shutdown_wait(volt_rt *rt, volt_time deadline) {
    while (!volt__is_stopped(rt)) {
        if (VOLT_FUTEX_WAIT(&rt->is_stopped, 0, deadline) != -ETIMEDOUT || volt__is_stopped(rt))
            continue;
        // The count may miss spawns by a worker that has just started, so it may even be below 0.
        // It is 0 if all tasks have ended and no worker has found that out yet.
        intptr_t n = (intptr_t)volt__count_alive(rt);
        volt__log_alive(rt);
        return n > INT_MAX ? INT_MAX : n > 0 ? (int)n : 1;
    }
    volt__join_threads(rt);
    return volt__to_int(volt__close_pool(rt, deadline));
}
VOLT_API int volt_shutdown(volt_rt *rt, volt_time at_most) {
    if (volt__is_forked_child(rt)) return -ECHILD;
    if (VOLT_TLS_GET()) {
        volt__shutdown_begin(rt);
        return -EINPROGRESS;
    }
    volt_time deadline = volt__deadline(at_most);
    volt__rt_pin(rt); // another thread may destroy the runtime once all are joined
    volt__shutdown_begin(rt);
    if (rt->cfg.is_guest) volt__guest_drain(rt, deadline);
    int rc = volt__shutdown_wait(rt, deadline);
    volt__rt_unpin(rt);
    return rc;
}
// Waits until no thread pins the runtime. Sets the low bit, which tells volt__rt_unpin to wake this
// thread; so `pins` is 1 without a pin.
static void volt__rt_wait_unpinned(volt_rt *rt) {
    uint32_t n = volt__or_acq_rel(&rt->pins, 1) | 1; // [S1] with unpin
    while (n != 1) {
        VOLT_FUTEX_WAIT(&rt->pins, n, VOLT_NEVER);
        n = volt__load_acq(&rt->pins); // [S1] with unpin
    }
}
// Called after all worker threads have exited. Frees the runtime and returns 0, or returns -EBUSY
// if any task is left. The first wait lets the threads that hold a pin release their references. If
// no task is left then, no thread can pin again, but the thread that released the last reference
// may still hold its pin: hence the second wait.
static int volt__teardown(volt_rt *rt, volt__unfinished *unfinished) {
    volt__rt_wait_unpinned(rt);
    volt__unfinished_find(rt, unfinished);
    if (unfinished->n_held + unfinished->n > 0) return -EBUSY;
    volt__rt_wait_unpinned(rt);
    volt__rt_free(rt);
    return 0;
}
VOLT_API int volt_destroy(volt_rt *rt) {
    volt__unfinished unfinished;
    if (volt__is_forked_child(rt)) return -ECHILD;
    if (volt__load_acq(&rt->join_state) != 2) return -EBUSY; // [S1] with join_threads
    if (volt__load_acq(&rt->guest_lock)) return -EBUSY;      // [L1] with guest_leave
    if (volt__is_pool_busy(rt)) return -EBUSY;
    return volt__teardown(rt, &unfinished);
}
VOLT_API int volt_create(const volt_config *config_or_null, volt_rt **out) {
    volt_rt *rt = NULL;
    volt__worker *w = NULL;
    *out = NULL;
    int rc = volt__rt_create(config_or_null, &rt);
    if (rc < 0) return rc;
#ifdef VOLT_SINGLE_THREAD
    rt->cfg.is_guest = 1; // there is no other thread to carry worker 0
#endif
    rc = rt->cfg.is_guest ? volt__worker_create(rt, 0, &w) : volt__start_next(rt);
    if (rc < 0) {
        volt__rt_free(rt);
        return rc;
    }
    if (w) {
        rt->started = 1;
        volt__guest_start(w);
    }
    volt__start_more(rt);
    *out = rt;
    return 0;
}
VOLT_API int volt_rt_fd(const volt_rt *rt) {
    return rt->cfg.is_guest ? rt->workers[0]->reactor.epfd : -EINVAL;
}
VOLT_API int volt_rt_step(volt_rt *rt, uint32_t max_polls) {
    if (!rt->cfg.is_guest) return -EINVAL;
    if (VOLT_TLS_GET()) return -EDEADLK;
    if (volt__is_forked_child(rt)) return -ECHILD;
    volt__check_thread(rt);
    if (!volt__try_lock(&rt->guest_lock)) return -EBUSY;
    volt__worker *w = rt->workers[0];
    // 0: no limit, except that the result is an int
    uint32_t most = max_polls > 0 && max_polls < INT_MAX ? max_polls : INT_MAX;
    uint32_t n = volt__guest_step(w, most);
    int is_over = volt__is_stopped(rt); // read here: after the next line *rt may be freed
    volt__guest_leave(w);
    return n == 0 && is_over ? -ESHUTDOWN : (int)n;
}
VOLT_API volt_time volt_rt_deadline(volt_rt *rt) {
    if (!rt->cfg.is_guest || volt__is_forked_child(rt)) return VOLT_NEVER;
    volt__worker *w = rt->workers[0];
    return w->guest_parked ? volt__sleep_deadline(w) : 0; // 0: now, tasks may be left
}
VOLT_API int volt_block_on(volt_rt *rt, volt_fn *fn, void *state) {
    volt_handle h;
    int64_t result = 0;
    if (VOLT_TLS_GET()) return -EDEADLK;
    volt__rt_pin(rt); // a volt_run that ends during this call waits until the handle is released
    int rc = volt__spawn_root(rt, NULL, &h, fn, state, 0);
    if (rc == 0) rc = volt_join_sync(&h, VOLT_NEVER, &result);
    volt__rt_unpin(rt);
    return rc < 0 ? rc : volt__to_int(result);
}
static int volt__run(const volt_config *config_or_null, volt_fn *fn, void *state) {
    volt__unfinished unfinished;
    volt_rt *rt = NULL;
    volt__worker *w = NULL;
    int rc = volt__rt_create(config_or_null, &rt);
    if (rc < 0) return rc;
    rc = volt__worker_create(rt, 0, &w);
    if (rc == 0) {
        rt->started = 1;
        rc = volt__spawn_root(rt, w, NULL, fn, state, VOLT__IS_ROOT);
    }
    if (rc < 0) {
        volt__rt_free(rt);
        return rc;
    }
    volt__start_more(rt);
    volt__worker_main(w);
    // the drain timeout has expired: tasks still use the runtime, so it is leaked
    if (!volt__is_stopped(rt)) {
        volt__log_alive(rt);
        return -ETIMEDOUT;
    }
    volt__join_threads(rt);
    // a job whose wait was abandoned still runs at the deadline: the runtime is leaked, too
    if (volt__close_pool(rt, w->drain_deadline) > 0) return -ETIMEDOUT;
    rc = volt__to_int(rt->root_result);
    // a handle or waker is left: the runtime is leaked, too, but the result stays the root task's
    if (volt__teardown(rt, &unfinished) < 0) volt__log_held(rt, &unfinished);
    return rc;
}
VOLT_API int volt_run(const volt_config *config_or_null, volt_fn *fn, void *state) {
    if (VOLT_TLS_GET()) return -EDEADLK;
    // volt_run has no application loop to be a guest of; an older struct has no such field
    if (config_or_null && (config_or_null->size == 0 || config_or_null->size >
                           offsetof(volt_config, is_guest)) && config_or_null->is_guest)
        return -EINVAL;
    // pthread_cancel takes effect after the return: other threads rely on this one for worker 0
    int cancel_state = volt__sys_disable_cancel();
    int rc = volt__run(config_or_null, fn, state);
    volt__sys_restore_cancel(cancel_state);
    return rc;
}

#ifdef __cplusplus
} // extern "C"
#endif
#endif // VOLT_IMPLEMENTATION

// Licence: MIT or 0BSD, whichever you prefer; see LICENSE.
