#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Proves that the simulation can fail: puts one defect after the other into a copy of volt.h and
# counts the seeds until the simulation finds it, in at most MUTANT_SECONDS of processor time for
# each build. Needs a C compiler and awk.
#   sh tests/sim/mutants.sh volt.h build/sim/mutants [name]
# The list stands below: "@ name: what is wrong", lines to find (-), lines to put in their place
# (+), without their indentation. Each must be found in the header exactly once. "@ name program:":
# a defect that only this one of the programs is likely to meet runs that alone.
# Last line: "mutants: N found, N not found"; fails unless all are found.
header=$1 out=$2 only=$3
here=$(dirname "$0")
seconds=${MUTANT_SECONDS:-20}
small='-DVOLT_TEST_SMALL -DVOLT_RING_CAP=4 -DVOLT_RING_INDEX_BITS=20 -DVOLT_WHEEL_BITS=2'
mkdir -p "$out"

list() {
    cat <<'END'
@ inject-silent: work from outside wakes nobody
- volt__injector_push(&rt->injector, c);
- volt__notify(rt);
+ volt__injector_push(&rt->injector, c);
@ spawn-silent: a spawn from outside wakes nobody
- if (ok && is_enqueued) volt__notify_first(rt, place);
+ (void)is_enqueued;
@ park-blind: no second look at the queues before sleeping
- if (volt__is_stopped(rt) || (left == 0 && volt__is_anything_takeable(rt))) {
+ if (volt__is_stopped(rt) || left == UINT32_MAX) {
@ leave-silent: the last searcher does not look again
- if (volt__idle_leave(&w->rt->idle) && volt__is_anything_takeable(w->rt)) volt__notify(w->rt);
+ (void)volt__idle_leave(&w->rt->idle);
@ claim-keeps-count: a claim that finds no sleeper stays counted as a searcher
- volt__sub_acq_rel(&s->searching, 1); // [I2] with enter
- volt__fence_sc(&s->searching);       // [I1] with enter
+ return -1;
@ eventfd-unread: the unpark token is never read
- while (VOLT_SYS(read, r->evfd, &n, sizeof n) < 0 && errno == EINTR) {}
+ (void)r; (void)n;
@ eventfd-edge: the unpark token is an edge, which another poller may swallow
- if (rc == 0) rc = volt__reactor_add(r, r->evfd, EPOLLIN, VOLT__TOKEN_EVENTFD);
+ if (rc == 0) rc = volt__reactor_add(r, r->evfd, EPOLLIN | EPOLLET, VOLT__TOKEN_EVENTFD);
@ unlock-silent: who waits for a lock is not woken
- if (VOLT__UNLIKELY(volt__xchg_rel(lock, 0) == 2)) VOLT_FUTEX_WAKE(lock, 1); // [L1] with lock
+ (void)volt__xchg_rel(lock, 0); // [L1] with lock
@ cancel-lost: a cancelled task is not queued
- if (h->task_ && volt__task_cancel(h->task_)) volt__schedule(h->task_);
+ if (h->task_) (void)volt__task_cancel(h->task_);
@ suspend-forgets: a wake-up during the poll is lost
- if (!volt__task_suspend(t)) return; // *t may be gone
- volt__tell_wake(w->rt, w, t);
- volt__push_ring(w, t);
+ (void)volt__task_suspend(t);
@ wake-doubles: a task that runs is queued by its wake-up as well
- return (old & (VOLT__RUNNING | VOLT__NOTIFIED | VOLT__COMPLETE)) == 0;
+ return (old & (VOLT__NOTIFIED | VOLT__COMPLETE)) == 0;
@ join-silent: the end of a task does not wake who joins it
- if (volt__task_wake(joiner)) volt__schedule(joiner);
+ (void)volt__task_wake(joiner);
@ group-silent: the last child does not wake the group's owner
- if (g->collects_ || g->n_live_ == 0) volt__list_fire_all(&g->waiters_, VOLT__FIRED, &c);
+ if (g->collects_) volt__list_fire_all(&g->waiters_, VOLT__FIRED, &c);
@ disarm-skipped: a timer given up stays on the wheel
- if (n->on_) volt__timer_disarm(n, cx->task_);
- else volt__node_unbind(n, cx->task_);
+ volt__node_unbind(n, cx->task_);
@ timer-early: deadlines are rounded down
- return d / VOLT_TICK_NS + (d % VOLT_TICK_NS != 0);
+ return d / VOLT_TICK_NS;
@ park-forgets-timers: a worker sleeps longer than until its next timer
- return due < end ? due : end;
+ return due < end ? end : due;
@ watch-once: who has looked does not arm the watch again
- w->stats.looks++;
- w->needs_watch = 1;
+ w->stats.looks++;
@ watch-off: nobody arms the watch on waking
- if (volt__watch_claim(&rt->watch)) volt__timer_fd_set(rt->watch.fd, rt->watch.period);
+ (void)volt__watch_claim;
@ watch-ticks: who has looked arms the watch again though all sleep
- if (w->needs_watch && volt__others_awake(w)) volt__watch_arm(w); // W4
+ if (w->needs_watch) volt__watch_arm(w); // W4
@ rescue-no-timers: the timers of a stuck worker are left to it
- volt__wheel_try_fire(&stuck->wheel, volt__tick_floor(w->rt, VOLT_NOW_NS()), &got.chain);
+ (void)volt__wheel_try_fire;
@ fd-no-seq: an operation waits although an event came since it tried
- if (rc == 0 && e->seq == seen.seq) {
+ if (rc == 0) {
@ fd-no-gen: events of a closed descriptor reach its number's next owner
- if (e->gen == VOLT__CAST(uint32_t, token >> 32) && e->mode != VOLT__MODE_NONE) {
+ if (e->mode != VOLT__MODE_NONE) {
@ fd-no-sticky: a hang-up that came with the last bytes is forgotten
- if (hang || (events & VOLT__CAST(uint32_t, EPOLLRDHUP | EPOLLPRI))) e->sticky = 1;
+ (void)0;
@ fd-short-read: a short read counts as "empty" on any stream, not only TCP
- if (type == SOCK_STREAM && volt__is_ip(family)) flags |= VOLT__FD_STREAM;
+ if (type == SOCK_STREAM) flags |= VOLT__FD_STREAM;
@ fd-not-rearmed: a foreign descriptor is watched only once
- if (e->mode == VOLT__MODE_EDGE) return EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
+ if (e->mode == VOLT__MODE_EDGE) return EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
+ if (e->seq) return EPOLLONESHOT;
@ pause-forgets: an operation out of budget in its middle takes the number's next file for its own
- n->next_ = n;
+ (void)n;
@ close-wakes-nobody: those who wait on a descriptor are not told that it is closed
- volt__fd_fire_all(e, &e->rd, VOLT__CLOSED, c);
+ e->rd = NULL;
@ connect-blind: the outcome of a connect is not asked for
- if (VOLT_SYS(getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0) error = errno;
+ (void)len;
@ lifo-unbounded: the LIFO slot may keep its worker for ever
- if (t && w->lifo_run < VOLT_LIFO_MAX && (t = volt__claim_lifo(w, t)) != NULL) {
- w->lifo_run++;
+ if (t && (t = volt__claim_lifo(w, t)) != NULL) {
@ overflow-drops: a full ring loses a task on its way to the injector
- for (uint32_t i = VOLT_RING_CAP / 2; i < VOLT_RING_CAP; i++)
- volt__chain_push(c, r->slot[(tail + i) & (VOLT_RING_CAP - 1)]);
+ for (uint32_t i = VOLT_RING_CAP / 2 + 1; i < VOLT_RING_CAP; i++)
+ volt__chain_push(c, r->slot[(tail + i) & (VOLT_RING_CAP - 1)]);
@ select-undrained: a select returns while its losers still wait
- case VOLT__PHASE_DRAIN: return a->state_ == VOLT__ARM_LIVE;
+ case VOLT__PHASE_DRAIN: return 0;
@ stop-silent: the last worker does not wake the others
- VOLT_FUTEX_WAKE(&rt->is_stopped, INT_MAX);
- volt__poke_all(rt);
+ VOLT_FUTEX_WAKE(&rt->is_stopped, INT_MAX);
@ ack-forgotten: a worker that has seen the shutdown does not say so
- volt__shutdown_ack(w->rt, UINT32_MAX);
+ if (w->index == 0) volt__shutdown_ack(w->rt, UINT32_MAX);
@ handle-kept: a join leaks its reference
- volt__task_drop(h->task_);
- h->task_ = NULL;
- return result;
+ h->task_ = NULL;
+ return result;
@ pool-silent: an idle thread that is given a job is not woken
- if (idle) VOLT_FUTEX_WAKE(&idle->parker.is_set, 1); // only its address: it may be gone
- return !has_room || idle ? 0 : volt__pool_start(p, job);
+ return !has_room || idle ? 0 : volt__pool_start(p, job);
@ pool-overbooked: more jobs at once than .blocking says
- int has_room = l->n_running < l->limit;
+ int has_room = 1;
@ pool-forgets: who has ended a job does not look for those that wait
- if (!job || l->n_running >= l->limit) continue;
+ if (l->limit) continue;
@ pool-not-counted: a job that was taken back still counts as running
- job->thread_->job = NULL;
- p->lane[job->lane_].n_running--;
+ job->thread_->job = NULL;
@ pool-takes-late: a job is taken back, and its thread runs it all the same
- job->thread_->job = NULL;
- p->lane[job->lane_].n_running--;
+ p->lane[job->lane_].n_running--;
@ pool-hopeful: a job waits for a thread although none could be started and none runs
- int is_hopeless = l->n_running == 0 || job->lane_ == VOLT__LANE_CARRY;
+ int is_hopeless = job->lane_ == VOLT__LANE_CARRY;
@ pool-loses lending: jobs behind one whose thread could not be started are not told
- lost->fail_(lost->arg_, error);
+ (void)lost->fail_;
@ pool-left: the end of a runtime does not wait for the threads of the pool
- n = volt__pool_await(p, deadline);
+ n = 0; (void)volt__pool_await; (void)deadline;
@ job-silent: the end of a job does not queue its task
- volt__node_fire(job->waiter_, VOLT__FIRED, &c);
- volt__unlock(&p->lock); // LAST TOUCH of the job
- volt__schedule_chain(&c);
+ volt__node_fire(job->waiter_, VOLT__FIRED, &c);
+ volt__unlock(&p->lock);
@ job-torn: a cancelled task leaves a job that has begun
- int ok = volt__node_state(n) == VOLT__LINKED && volt__pool_take_back(p, job);
+ int ok = volt__node_state(n) == VOLT__LINKED; (void)volt__pool_take_back(p, job);
@ helm-silent: who gives the helm does not wake who waits for it
- volt__store_rel(word, *word + 1); // [H1] with take
- VOLT_FUTEX_WAKE(word, INT_MAX);
+ volt__store_rel(word, *word + 1); // [H1] with take
@ helm-unpoked: who wants the helm does not wake the worker
- if (now != mine) volt__reactor_unpark(&w->reactor);
+ (void)volt__reactor_unpark;
@ helm-kept lending: who is at the helm gives way only when there is nothing to do
- if (VOLT__UNLIKELY(volt__has_given_up(w) || w->is_wanted)) return 1;
+ if (VOLT__UNLIKELY(volt__has_given_up(w))) return 1;
@ lend-refused: a worker is not lent, and blocks
- if (!volt__lend(w, &job)) return volt__block_here(w, fn, arg);
+ if (w->rt || !volt__lend(w, &job)) return volt__block_here(w, fn, arg);
@ reclaim-searching: who comes back from a call in place stays counted as a searcher
- volt__found(w); // the rest of our poll: whoever was at the helm may have left as a searcher
+ (void)volt__found;
@ hand-out-lost refused: a worker that blocks without being lent keeps what waits there
- volt__hand_out(w);
- VOLT_TLS_SET(VOLT__CAST(volt__worker *, NULL));
+ VOLT_TLS_SET(VOLT__CAST(volt__worker *, NULL));
@ place-silent: what is placed wakes nobody
- volt__notify_first(rt, place);
- }
+ }
@ spawn-place-silent: what is placed by a spawn wakes the wrong worker only
- if (ok && is_enqueued) volt__notify_first(rt, place);
+ if (ok && is_enqueued && place == VOLT__ANYONE) volt__notify_first(rt, place);
@ place-unstolen: thieves leave inboxes alone
- return n == 0 && volt__has_inboxes(w->rt) ? volt__fetch(w, &from->inbox, 2) : n;
+ return n;
@ place-blind: no look at inboxes before sleeping
- if (volt__has_inboxes(rt) && !volt__injector_is_empty(&rt->workers[i]->inbox)) return 1;
+ (void)i;
@ place-open placing: an inbox takes spawns after its worker has seen the shutdown
- if (volt__has_inboxes(w->rt)) volt__injector_close(&w->inbox);
+ (void)volt__injector_close;
@ place-uncounted: spawns into inboxes are not counted at the end
- n += inbox->spawned;
+ (void)inbox->spawned;
@ load-drifts: what waits in an inbox is no part of its worker's load
- VOLT__CAST(uint32_t, placed + VOLT__CAST(uintptr_t, volt__lifo_is_full(w)));
+ VOLT__CAST(uint32_t, 0 * placed + VOLT__CAST(uintptr_t, volt__lifo_is_full(w)));
@ name-joined-late: an answered question can still be joined
- q->rc = rc;
- volt__query_unlist(q);
+ q->rc = rc;
@ name-kept: who leaves a question that nobody has begun keeps its memory
- if (was_taken_back) q->refs--; // the job's
+ (void)was_taken_back;
@ name-forsaken: a question that nobody waits for any more runs all the same
- was_taken_back = volt__pool_take_back(&rt->pool, &q->job);
+ was_taken_back = 1;
@ name-silent: the answer wakes nobody
- int is_last = volt__query_drop(q);
- volt__unlock(&rt->names_lock);
- if (is_last) volt__query_free(q);
- volt__schedule_chain(&c);
+ int is_last = volt__query_drop(q);
+ volt__unlock(&rt->names_lock);
+ if (is_last) volt__query_free(q);
@ dial-first-only: an address that refuses is not followed by the next at once
- if (is_next && (i == 0 || d->n_failed_ > d->n_failed_before_) && !volt__is_off(cx)) {
+ if (is_next && i == 0 && !volt__is_off(cx)) {
@ file-short: a short write ends a file
- done += VOLT__CAST(size_t, n);
- }
- return VOLT__CAST(int, done);
+ done += VOLT__CAST(size_t, n);
+ if (is_write) break;
+ }
+ return VOLT__CAST(int, done);
@ file-shifted: what follows a short read comes from where that began
- off_t at = VOLT__CAST(off_t, op->offset_) + VOLT__CAST(off_t, done);
+ off_t at = VOLT__CAST(off_t, op->offset_);
@ file-open: a whole file that was read stays open
- rc = -EFBIG;
- VOLT_SYS(close, fd);
+ rc = -EFBIG;
END
}

# Writes the header with the defect called `name`, or says why not.
mutate() {
    list | awk -v name="$1" -v header="$header" '
        function strip(s) { sub(/^[ \t]+/, "", s); return s }
        /^@ / { sub(/:.*/, ""); mine = $2 == name; next }
        mine && /^- / { want[++n_want] = substr($0, 3) }
        mine && /^\+ / { put[++n_put] = substr($0, 3) }
        END {
            while ((getline line < header) > 0) text[++n] = line
            for (i = 1; i + n_want - 1 <= n; i++) {
                for (k = 1; k <= n_want && strip(text[i + k - 1]) == want[k]; k++) {}
                if (k > n_want) { hits++; at = i }
            }
            if (hits != 1) {
                print name ": its lines stand " hits + 0 " times in " header > "/dev/stderr"
                exit 1
            }
            for (i = 1; i <= n; i++) {
                if (i != at) { print text[i]; continue }
                for (k = 1; k <= n_put; k++) print put[k]
                i += n_want - 1
            }
        }' >"$out/$1.h"
}

# Tries the normal build first, then the small one: some defects need rings that overflow.
hunt() {
    mutate "$1" || return 1
    program=$(list | sed -n "s/^@ $1 \([a-z]*\):.*/program=\1/p")
    for build in normal small; do
        flags=; [ $build = small ] && flags=$small
        # shellcheck disable=SC2086
        ${CC:-cc} -std=gnu11 -O0 -w $flags -DSIM_VOLT="\"$PWD/$out/$1.h\"" "$here/main.c" \
            -o "$out/$1-$build" || return 1
        # shellcheck disable=SC2086
        "$out/$1-$build" brief=1 seconds="$seconds" $program >"$out/$1.log" 2>&1 && continue
        seeds=$(sed -n 's/^found after \([0-9]*\) seeds$/\1/p' "$out/$1.log")
        why=$(sed -n 's/^FAILED: //p' "$out/$1.log" | head -n 1 | cut -c 1-110)
        printf '%-20s %-6s found after %6s seeds: %s\n' "$1" $build "${seeds:-?}" "$why"
        return 0
    done
    printf '%-20s not found\n' "$1"
    return 1
}

found=0 missed=0
for name in $(list | sed -n 's/^@ \([a-z-]*\).*:.*/\1/p'); do
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    if hunt "$name"; then found=$((found + 1)); else missed=$((missed + 1)); fi
done
echo "mutants: $found found, $missed not found"
[ $missed = 0 ]
