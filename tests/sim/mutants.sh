#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Proves that the simulation can fail: puts one defect after the other into a copy of volt.h and
# counts the seeds until the simulation finds it, in at most MUTANT_SECONDS of processor time for
# each build. Needs a C compiler and awk.
#   sh tests/sim/mutants.sh volt.h build/sim/mutants [name]
# The list is below: "@ name: the defect", lines to find (-), their replacement (+), without
# indentation. Each must be found in the header exactly once. "@ name program:" runs the defect in
# that program alone, as the others are unlikely to meet it. Last line: "mutants: N found, N not
# found"; fails unless all are found. Environment: APPLY=1: only checks that each entry fits the
# header.
header=$1 out=$2 only=$3
here=$(dirname "$0")
seconds=${MUTANT_SECONDS:-600} # the most hidden ones take half of it
# as in the Makefile
small='-DVOLT_TEST_SMALL -DVOLT_RING_CAP=4 -DVOLT_RING_INDEX_BITS=20 -DVOLT_OVERFLOW_CAP=2'
small="$small -DVOLT_WHEEL_BITS=2 -DVOLT_TICK_NS=1000000"
mkdir -p "$out"

list() {
    cat <<'END'
@ inject-silent: work from outside wakes no worker
- volt__injector_push(&rt->injector, c);
- volt__wake_worker(rt);
+ volt__injector_push(&rt->injector, c);
@ spawn-silent: a spawn from outside wakes no worker
- if (ok && is_placed) volt__wake_worker_preferring(rt, place);
+ if (ok && is_placed) (void)place;
@ park-blind: no second look at the queues before sleeping
- (left == 0 && volt__has_stealable_work(rt))) {
+ left == UINT32_MAX) {
@ leave-silent: the last searcher does not look again
- if (volt__idle_end_search(&w->rt->idle) && volt__has_stealable_work(w->rt))
- volt__wake_worker(w->rt);
+ (void)volt__idle_end_search(&w->rt->idle);
@ claim-keeps-count: a claim that finds no sleeper stays counted as a searcher
- volt__sub_acq_rel(&idle->searching, 1); // [I2] with park
- volt__fence_sc(&idle->searching);       // [I1] with park
+ return -1;
@ eventfd-unread: the unpark token is never read
- while (VOLT_SYS(read, r->evfd, &n, sizeof n) < 0 && errno == EINTR) {}
+ (void)r; (void)n;
@ eventfd-edge: the unpark token is an edge, which another poller may swallow
- if (rc == 0) rc = volt__reactor_add(r, r->evfd, EPOLLIN, VOLT__EPOLL_EVENTFD);
+ if (rc == 0) rc = volt__reactor_add(r, r->evfd, EPOLLIN | EPOLLET, VOLT__EPOLL_EVENTFD);
@ unlock-silent: a waiter for a lock is not woken
- if (was == 2) VOLT_FUTEX_WAKE(lock, 1);
+ (void)was;
@ cancel-lost: a cancelled task is not queued
- if (h->task_ && volt__task_cancel(h->task_)) volt__schedule(h->task_);
+ if (h->task_) (void)volt__task_cancel(h->task_);
@ suspend-forgets: a wake-up during the poll is lost
- if (!volt__task_suspend(t)) return; // *t may be gone
- volt__trace_wake(w->rt, w, t);
- volt__push_requeued(w, t);
+ (void)volt__task_suspend(t);
@ wake-doubles: a running task is queued by its wake-up as well
- return (old & (VOLT__RUNNING | VOLT__NOTIFIED | VOLT__COMPLETE)) == 0;
+ return (old & (VOLT__NOTIFIED | VOLT__COMPLETE)) == 0;
@ join-silent: the end of a task does not wake its joiner
- if (volt__task_wake(joiner)) volt__schedule(joiner);
+ (void)volt__task_wake(joiner);
@ group-silent: the last child does not wake the group's owner
- if (g->collects_ || g->n_live_ == 0) volt__list_fire_all(&g->waiters_, VOLT__FIRED, &c);
+ if (g->collects_) volt__list_fire_all(&g->waiters_, VOLT__FIRED, &c);
@ disarm-skipped: an abandoned timer stays on the wheel
- if (node->source_) volt__timer_disarm(node, cx->task_);
- else volt__node_unbind(node, cx->task_);
+ volt__node_unbind(node, cx->task_);
@ timer-early: deadlines are rounded down
- return d / VOLT_TICK_NS + (d % VOLT_TICK_NS != 0);
+ return d / VOLT_TICK_NS;
@ park-forgets-timers: a worker sleeps beyond its next timer
- return due < end ? due : end;
+ return due < end ? end : due;
@ watchdog-once: a scan does not arm the watchdog again
- w->stats.watchdog_scans++;
- w->needs_watchdog = 1;
+ w->stats.watchdog_scans++;
@ watchdog-off: no waking worker arms the watchdog
- if (!volt__watchdog_claim(&rt->watchdog)) return;
+ if (rt->started > 0 || !volt__watchdog_claim(&rt->watchdog)) return;
@ watchdog-ticks: a scan arms the watchdog again although all workers sleep
- if (w->needs_watchdog && volt__others_awake(w)) volt__watchdog_arm(w); // after a scan
+ if (w->needs_watchdog) volt__watchdog_arm(w); // after a scan
@ rescue-no-timers: the timers of a stuck worker are not rescued
- volt__wheel_try_fire(&stuck->wheel, volt__tick_floor(w->rt, VOLT_NOW_NS()), &got.chain);
+ (void)volt__wheel_try_fire;
@ fd-no-seq: an operation waits although an event came since its attempt
- if (rc == 0 && e->seq == snapshot.seq) {
+ if (rc == 0) {
@ fd-no-gen: events of a closed descriptor reach its number's next owner
- if (e->gen == (uint32_t)(epoll_data >> 32) && e->mode != VOLT__MODE_NONE) {
+ if (e->mode != VOLT__MODE_NONE) {
@ fd-no-sticky: a hang-up that came with the last bytes is forgotten
- if (hang || (events & (uint32_t)(EPOLLRDHUP | EPOLLPRI))) e->sticky = 1;
+ (void)0;
@ fd-short-read: a short read counts as "empty" on any socket, not only TCP
- protocol == IPPROTO_TCP)
+ 1)
@ fd-not-rearmed: a foreign descriptor is watched only once
- if (e->mode == VOLT__MODE_EDGE) return EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
+ if (e->mode == VOLT__MODE_EDGE) return EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
+ if (e->seq) return EPOLLONESHOT;
@ pause-forgets: an operation that runs out of budget continues on the next file of the number
- node->next_ = node;
+ (void)node;
@ close-wakes-no-waiter: a close does not wake the tasks that wait for the descriptor
- volt__fd_fire_waiters(e, VOLT__CLOSED, c);
+ e->rd = e->wr = NULL;
@ connect-blind: the outcome of a connect is not read
- int rc = VOLT_SYS(connect, fd, volt__addr_sa(args->to), args->to->len_);
+ int rc = 0;
@ lifo-unbounded: the LIFO slot may occupy its worker without end
- if (t && w->lifo_run < VOLT_LIFO_MAX) {
- volt__store_rlx(&w->lifo, (volt__task *)NULL); // rlx: the lock orders it
- w->lifo_run++;
+ if (t) {
+ volt__store_rlx(&w->lifo, (volt__task *)NULL);
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
- volt__unpark_all(rt);
+ VOLT_FUTEX_WAKE(&rt->is_stopped, INT_MAX);
@ ack-forgotten: a worker that has seen the shutdown does not acknowledge it
- volt__shutdown_ack(w->rt, UINT32_MAX);
+ if (w->index == 0) volt__shutdown_ack(w->rt, UINT32_MAX);
@ handle-kept: a join leaks its reference
- volt__task_drop(h->task_);
- h->task_ = NULL;
- return result;
+ h->task_ = NULL;
+ return result;
@ pool-silent: an idle thread that is given a job is not woken
- if (idle) VOLT_FUTEX_WAKE(&idle->parker.is_set, 1); // uses the address only: *idle may be gone
- return !has_room || idle ? 0 : volt__pool_start(p, job);
+ return !has_room || idle ? 0 : volt__pool_start(p, job);
@ pool-overbooked: more jobs at once than .blocking says
- int has_room = l->n_running < l->limit;
+ int has_room = 1;
@ pool-forgets: a pool thread that ends a job does not look for waiting ones
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
- int is_queued = job->lane_ != VOLT__LANE_HANDOFF && n_coming > 0;
+ int is_queued = job->lane_ != VOLT__LANE_HANDOFF; (void)n_coming;
@ pool-loses lending: jobs behind one whose thread could not be started get no error
- lost->fail_(lost->arg_, error);
+ (void)lost->fail_;
@ pool-left: the end of a runtime does not wait for the threads of the pool
- n = volt__pool_wait_exited(p, deadline);
+ n = 0; (void)volt__pool_wait_exited; (void)deadline;
@ job-silent: the end of a job does not queue its task
- volt__list_fire_all(&job->waiters_, VOLT__FIRED, &c);
- volt__unlock(&p->lock); // LAST TOUCH of the job
- volt__schedule_chain(&c);
+ volt__list_fire_all(&job->waiters_, VOLT__FIRED, &c);
+ volt__unlock(&p->lock);
@ job-torn: a cancelled task leaves a job that has begun
- if (job->state_ != VOLT__JOB_NONE && volt__pool_cancel(&job->rt_->pool, job))
+ if (job->state_ != VOLT__JOB_NONE) (void)volt__pool_cancel(&job->rt_->pool, job);
+ if (was == VOLT__LINKED)
@ carrier-silent: the release of the carrier lock does not wake its waiter
- volt__store_rel(word, *word + 1); // [H1] with acquire
- VOLT_FUTEX_WAKE(word, INT_MAX);
+ volt__store_rel(word, *word + 1); // [H1] with acquire
@ carrier-not-unparked: a waiter for the carrier lock does not unpark the worker
- if (serving != ticket) volt__reactor_unpark(&w->reactor);
+ (void)volt__reactor_unpark;
@ carrier-kept lending: a waiter at the carrier lock is served only when there is nothing to do
- if (VOLT__UNLIKELY(volt__drain_expired(w) || w->handoff_wanted)) return 1;
+ if (VOLT__UNLIKELY(volt__drain_expired(w))) return 1;
@ handoff-refused: a blocking worker is not handed off
- if (!volt__handoff_begin(w, &handoff)) return volt__block_without_handoff(w, fn, arg);
+ if (w->rt || !volt__handoff_begin(w, &handoff)) return volt__block_without_handoff(w, fn, arg);
@ reclaim-searching: a worker that returns from a call in place stays counted as a searcher
- // this thread resumes its poll: the carrier in between may have left the worker searching
- volt__searching_done(w);
+ (void)volt__searching_done;
@ hand-out-lost refused: a worker that blocks without a handoff keeps its tasks
- volt__evict_local_tasks(w);
- VOLT_TLS_SET((volt__worker *)NULL);
+ VOLT_TLS_SET((volt__worker *)NULL);
@ overflow-forgotten: an idle worker does not continue with its overflow queue
- if (!t) t = volt__next_from_overflow(w, w->inject_batch);
+ (void)volt__next_from_overflow;
@ bound-silent: a bound task does not wake its worker
- if (volt__idle_is_parked(&rt->idle, w->index)) volt__unpark(w);
+ (void)rt;
@ bound-blind: no look at bound tasks before sleeping
- if (volt__is_stopped(rt) || !volt__injector_is_empty(&w->bound) ||
+ if (volt__is_stopped(rt) ||
@ bound-stolen: the watchdog moves bound tasks to its own ring
- volt__route_chain(w->rt, w, &got.chain);
- volt__rescue_local(stuck, &got.chain);
+ volt__rescue_local(stuck, &got.chain);
@ urgent-blind: no look at the urgent lane before sleeping
- if (!volt__injector_is_empty(&rt->injector) || !volt__injector_is_empty(&rt->urgent)) return 1;
+ if (!volt__injector_is_empty(&rt->injector)) return 1;
@ place-silent: a placed task wakes no worker
- volt__wake_worker_preferring(rt, place);
- }
+ }
@ spawn-place-silent: a task placed by a spawn wakes only the wrong worker
- if (ok && is_placed) volt__wake_worker_preferring(rt, place);
+ if (ok && is_placed && place == VOLT__ANY_WORKER) volt__wake_worker_preferring(rt, place);
@ place-unstolen: thieves leave inboxes alone
- return n == 0 && volt__has_inboxes(w->rt) ? volt__refill_from(w, &from->inbox, 2) : n;
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
@ load-drifts: tasks in an inbox are not part of the load of its worker
- (uint32_t)(n_inbox + n_bound + (uintptr_t)volt__lifo_is_full(w));
+ (uint32_t)(0 * n_inbox + n_bound + (uintptr_t)volt__lifo_is_full(w));
@ name-joined-late: an answered lookup can still be joined
- q->rc = rc;
- volt__query_unlist(q);
+ q->rc = rc;
@ name-kept: a waiter that leaves a lookup that has not begun keeps its memory
- if (was_cancelled) q->refs--; // the job's
+ (void)was_cancelled;
@ name-forsaken: a lookup without waiters still runs
- was_cancelled = volt__pool_cancel(&rt->pool, &q->job);
+ was_cancelled = 1;
@ name-silent: the answer wakes no waiter
- int is_last = volt__query_release(q);
- volt__unlock(&rt->names_lock);
- if (is_last) volt__query_free(q);
- volt__schedule_chain(&c);
+ int is_last = volt__query_release(q);
+ volt__unlock(&rt->names_lock);
+ if (is_last) volt__query_free(q);
@ dial-first-only: an address that refuses is not followed by the next at once
- if (is_next && (i == 0 || d->n_failed_ > d->n_failed_before_) &&
- !volt__scope_is_cancelled(cx)) {
+ if (is_next && i == 0 && !volt__scope_is_cancelled(cx)) {
@ file-short: a short write ends a file
- done += (size_t)n;
- }
- return (int)done;
+ done += (size_t)n;
+ if (is_write) break;
+ }
+ return (int)done;
@ file-shifted: a short read is continued from its own start
- off_t at = (off_t)op->offset_ + (off_t)done;
+ off_t at = (off_t)op->offset_;
@ file-open: a whole file that was read stays open
- if (n != 0) rc = n < 0 ? -errno : -EFBIG;
- }
- VOLT_SYS(close, fd);
+ if (n != 0) rc = n < 0 ? -errno : -EFBIG;
+ }
@ wait-task-silent turns: a grant to a task does not queue it
- volt__parker_set(&((volt__thread_waiter *)waiter)->parker);
- }
- volt__schedule_chain(&w->chain);
+ volt__parker_set(&((volt__thread_waiter *)waiter)->parker);
+ }
@ wait-thread-silent turns: a grant to a thread does not wake it
- volt__parker_set(&((volt__thread_waiter *)waiter)->parker);
+ (void)waiter;
@ wait-late-grant turns: a thread that times out loses its grant
- if (value == VOLT__PENDING) volt__parker_wait(&b->parker, VOLT_NEVER); // on its way
- return value;
+ if (value == VOLT__PENDING) volt__parker_wait(&b->parker, VOLT_NEVER);
+ return -ECANCELED;
@ sema-blind turns: the last check of a waiter precedes its QUEUED flag, so that it misses a release
- (void)volt__or_acq_rel(&sema->word_, VOLT__SEMA_QUEUED); // [G1] with release
- if (was == VOLT__RETRY) volt__sema_retry_done(sema);
- uint32_t got = volt__sema_take_permits(sema, op);
+ if (was == VOLT__RETRY) volt__sema_retry_done(sema);
+ uint32_t got = volt__sema_take_permits(sema, op);
+ (void)volt__or_acq_rel(&sema->word_, VOLT__SEMA_QUEUED);
@ sema-grant-lost turns: a cancelled waiter keeps its permits
- uint32_t had = was == VOLT__FIRED ? op->n : part;
+ uint32_t had = part;
@ sema-part-lost turns: a cancelled waiter keeps a part of its permits
- uint32_t part = was == VOLT__LINKED || was == VOLT__CLOSED ? op->n - volt__sema_n_wanted(node)
- : 0;
+ uint32_t part = 0;
@ sema-close-part turns: a waiter that sees the close keeps a part of its permits
- volt__sema_return_permits(sema, op->mask,
- was == VOLT__CLOSED ? op->n - volt__sema_n_wanted(node) : 0);
+ volt__sema_return_permits(sema, op->mask, 0);
@ sema-turn-lost turns: the turn of a cancelled waiter goes to none
- if (was == VOLT__RETRY && sema->waiters_ && volt__sema_permits_of(word, op->mask) > 0)
- volt__sema_grant_waiters(sema, op->mask, 0, wakes);
- else if (had > 0 && sema->waiters_) volt__sema_grant_waiters(sema, op->mask, had, wakes);
+ (void)word;
+ if (had > 0 && sema->waiters_) volt__sema_grant_waiters(sema, op->mask, had, wakes);
@ sema-turn-kept turns: a cancelled waiter keeps the turn, so none is woken
- uint32_t had = was == VOLT__FIRED ? op->n : part;
- if (was == VOLT__RETRY) volt__sema_retry_done(sema);
+ uint32_t had = was == VOLT__FIRED ? op->n : part;
@ wait-last-first turns: the newest waiter is the first in the list
- volt__list_push(op->waiters, node);
- if (is_first) *op->waiters = node;
+ volt__list_push(op->waiters, node);
+ *op->waiters = node; (void)is_first;
@ sema-barged turns: a waiter for a mutex may starve
- int64_t tries = was == VOLT__RETRY ? volt__sema_n_tries(node) + 1 : 0;
+ int64_t tries = 0;
@ sema-close-silent turns: a close does not wake the waiters
- volt__wake_list_fire_all(&wakes, &sema->waiters_, VOLT__CLOSED);
+ (void)0;
@ rwlock-downgraded turns: a writer that becomes a reader also releases its own read
- (void)volt__sema_release(&l->sema_, VOLT__SEMA_ALL, VOLT__READERS - 1);
+ (void)volt__sema_release(&l->sema_, VOLT__SEMA_ALL, VOLT__READERS);
@ waitword-first-only turns: an opened latch passes only the first waiter
- volt__wake_list_fire_all(&wakes, &waitword->waiters_, VOLT__FIRED);
+ volt__wake_list_fire_first(&wakes, &waitword->waiters_, VOLT__FIRED);
@ waitword-blind turns: the last check of a waiter precedes its flag, so that it misses an opening
- // [G2] with change
- uint32_t word = volt__or_acq_rel(&waitword->word_, VOLT__WAITWORD_QUEUED);
+ uint32_t word = volt__load_acq(&waitword->word_);
+ (void)volt__or_acq_rel(&waitword->word_, VOLT__WAITWORD_QUEUED);
@ notify-lost turns: a notified waiter that is cancelled does not pass the notification on
- int is_left = was == VOLT__FIRED || was == VOLT__RETRY;
+ int is_left = 0;
@ notify-no-permit turns: with waiters for notify_all only, no permit is kept
- else volt__notify_return_permit(notify, notify->watchers_ ? VOLT__NOTIFY_PERMIT : 0);
+ else volt__notify_return_permit(notify, 0);
@ notify-past-blind turns: a wait past a count does not check again under the lock
- if (word / VOLT__NOTIFY_ALL == op->n) {
+ if (word + 1) {
@ barrier-early turns: one arrival too few
- if (b->arrived_ + 1 < b->n_) {
+ if (b->arrived_ + 2 < b->n_) {
@ barrier-kept turns: a cancelled arrival still counts
- b->arrived_--;
+ (void)0;
@ barrier-leaders turns: every task is the leader
- if (was == VOLT__FIRED) return 0;
- VOLT_ASSERT(!b->arrived_ == !b->waiters_);
+ if (was == VOLT__FIRED) return 1;
@ cond-signal-lost turns: a signalled waiter that is cancelled does not pass the signal on
- if (was == VOLT__FIRED && *op->waiters)
- volt__wake_list_fire_first(wakes, op->waiters, VOLT__FIRED);
+ (void)was, (void)wakes;
@ cond-unlocks-first turns: a thread unlocks the mutex before it waits
- (void)volt__wait_op_step(&op, &b.node, 0); // linked
- volt_mutex_unlock(m);
+ volt_mutex_unlock(m);
+ (void)volt__wait_op_step(&op, &b.node, 0);
@ cond-not-relocked turns: a cancelled waiter returns without the mutex
- node->kind_ = VOLT__LEAF_EVENT; // the second wait
+ if (is_cancelled) return p;
+ node->kind_ = VOLT__LEAF_EVENT;
@ chan-room-lost turns: a cancelled sender keeps its slot
- if (was == VOLT__FIRED) {
- c->n_slots_granted_--;
- volt__rendezvous_retry(c, wakes);
- }
- volt__chan_grant_waiters(c, wakes);
+ volt__chan_grant_waiters(c, wakes);
@ chan-message-lost turns: a cancelled receiver keeps its message
- if (was == VOLT__TRANSFERRED) return 1; // the message has been received
- if (was == VOLT__FIRED) c->n_msgs_granted_--;
+ if (was == VOLT__TRANSFERRED) return 1;
@ chan-right-unserved turns: the message of a cancelled receiver goes to none
- if (was == VOLT__FIRED) c->n_msgs_granted_--;
- volt__chan_grant_waiters(c, wakes);
+ if (was == VOLT__FIRED) c->n_msgs_granted_--;
+ (void)wakes;
@ chan-overtaken turns: a sender without a grant takes the slot of the first waiter
- uint32_t room = !has_grant && c->senders_ ? 0 : volt__chan_room(c);
+ uint32_t room = volt__chan_room(c) + (!has_grant && c->senders_ && c->len_ < c->cap_);
@ chan-one-too-many turns: the buffer takes one message too many
- return used < c->cap_ ? c->cap_ - used : 0;
+ return used <= c->cap_ ? c->cap_ + 1 - used : 0;
@ chan-drained-early turns: closed and drained, although a reserved slot is to be filled
- if (ready + n_met == 0)
- return c->is_closed_ && c->len_ + c->n_slots_granted_ == 0 ? 0 : -EAGAIN;
+ if (ready + n_met == 0) return c->is_closed_ && c->len_ == 0 ? 0 : -EAGAIN;
@ chan-close-keeps turns: a sender with a granted slot keeps it at the close
- if (c->is_closed_) {
- if (has_grant) c->n_slots_granted_--;
+ if (c->is_closed_) {
@ chan-no-rendezvous turns: an arriving receiver does not grant a reservation
- volt__chan_grant_waiters(c, wakes); // a rendezvous has room now
+ (void)0;
@ chan-meets-past-a-reservation turns: senders that wait during a reservation are overtaken
- if (c->n_slots_granted_ > 0 && volt__rendezvous_has_other(ours, own_select)) return 0;
+ (void)ours;
@ chan-meets-twice turns: a select with two arms that meet gets both messages, and keeps one
- return !select || volt__cas_acq_rel(&select->next_, &was, node); // [X1] with select
+ return !select || volt__cas_acq_rel(&select->next_, &was, node) || was != VOLT__SELECT_POLLING;
@ chan-met-arm-stays turns: an arm whose select was met elsewhere stays linked, and looks no more
- volt__list_remove(list, node);
- if (volt__select_claim(node)) return node;
+ if (volt__select_of(node) && volt__select_of(node)->next_ > VOLT__SELECT_IDLE) continue;
+ volt__list_remove(list, node);
+ if (volt__select_claim(node)) return node;
@ chan-close-silent turns: a close does not wake waiting senders
- volt__wake_list_fire_all(wakes, &c->senders_, VOLT__CLOSED);
+ (void)0;
@ queue-reversed turns: the newest first
- n->next_ = q->first_;
- q->first_ = n;
+ if (!q->first_) q->first_ = n;
@ queue-ended-early turns: the check for a close follows the check for messages
- if (!q->first_) return volt__queue_has(was, VOLT__QUEUE_CLOSED) ? 0 : -EAGAIN;
+ was = volt__load_acq(&q->word_);
+ if (!q->first_) return volt__queue_has(was, VOLT__QUEUE_CLOSED) ? 0 : -EAGAIN;
@ queue-blind turns: a receiver waits although a push followed its check
- if (volt__cas_acq_rel(&q->word_, &empty, (void *)VOLT__QUEUE_WAITING)) break;
+ if (volt__cas_acq_rel(&q->word_, &empty, (void *)VOLT__QUEUE_WAITING) || 1) break;
@ oneshot-early turns: it opens before its value is set
- o->value_ = value;
- return volt__oneshot_end(o, VOLT__ONESHOT_ENDED | VOLT__ONESHOT_HAS_VALUE);
+ int rc = volt__oneshot_end(o, VOLT__ONESHOT_ENDED | VOLT__ONESHOT_HAS_VALUE);
+ o->value_ = value;
+ return rc;
@ bcast-lag-early turns: one message is lost too early
- if (VOLT__UNLIKELY(b->sent_ - s->next_ > b->cap_)) return volt__sub_skip(s);
+ if (b->sent_ - s->next_ >= b->cap_) {
+ s->next_++; s->lost_++;
+ return -EOVERFLOW;
+ }
@ bcast-lag-uncounted turns: losses since the last report are not added up
- s->lost_ += lost;
+ s->lost_ = 1;
@ bcast-drops-late turns: a slow subscriber reads an overwritten message
- if (VOLT__UNLIKELY(b->sent_ - s->next_ > b->cap_)) return volt__sub_skip(s);
+ if (b->sent_ - s->next_ > b->cap_ + 1) return volt__sub_skip(s);
@ watch-closed-early turns: the last value before the close is not seen
- if (!is_it) return w->is_closed_ ? 0 : -EAGAIN;
+ if (w->is_closed_) return 0;
+ if (!is_it) return -EAGAIN;
@ watch-silent turns: a new value wakes no waiter
- w->version_++;
- volt__wake_list_fire_all(&wakes, &w->waiters_, VOLT__RETRY);
+ w->version_++;
@ waitword-open-behind turns: an opener behind a waiter that left unlocks freed memory
- if (is_waited_for) {
- do to = change(*word, n);
+ is_waited_for = 1;
+ {
+ do to = change(*word, n);
@ sema-give-behind turns: a release behind a waiter that left unlocks freed memory
- int is_waited_for = sema->waiters_ != NULL;
- if (is_waited_for) volt__sema_grant_waiters(sema, invert, n, &wakes);
- else volt__sema_return_permits(sema, invert, 0);
+ int is_waited_for = 1;
+ if (sema->waiters_) volt__sema_grant_waiters(sema, invert, n, &wakes);
+ else volt__sema_return_permits(sema, invert, n);
@ notify-behind turns: a notify behind a waiter that left unlocks freed memory
- else volt__notify_return_permit(notify, notify->watchers_ ? VOLT__NOTIFY_PERMIT : 0);
- is_waited_for |= notify->watchers_ != NULL;
+ else volt__notify_return_permit(notify, VOLT__NOTIFY_PERMIT);
+ is_waited_for = 1;
@ hook-uncalled turns: hooks of a token that is cancelled with its parent are not called
- end = volt__token_take_hooks(at, end);
+ if (at == t) end = volt__token_take_hooks(at, end);
@ hook-hasty turns: removing a hook does not wait for its current call
- volt__parker_wait(&h->done_, VOLT_NEVER);
+ (void)0;
@ guest-silent: a guest that stops in the middle does not make its descriptor readable
- if (!w->guest_parked && !volt__guest_is_asked(w)) volt__reactor_unpark(&w->reactor);
+ (void)0;
@ guest-no-alarm: the timer of a guest's descriptor is not set
- volt__timer_fd_set(r->timer_fd, left);
+ (void)left;
@ guest-one-alarm: the timer of a guest's descriptor is set only once
- if (at == r->timer_set_to) return;
+ if (r->timer_set_to != VOLT_NEVER) return;
@ guest-unparked: a returning guest stays in the set of sleepers
- if (volt__drive_events(w, was_away, 0)) volt__watchdog_scan(w);
+ if (volt__drive_events(w, 0, 0)) volt__watchdog_scan(w);
@ ready-missed pongs: an attempt that failed clears a readiness that an event has just told
- if (e->seq == snapshot.seq && e->mode == VOLT__MODE_EDGE)
- volt__store_rlx(&e->ready, (uint8_t)(e->ready & ~dir)); // rlx: under lock
+ if (e->mode == VOLT__MODE_EDGE)
+ volt__store_rlx(&e->ready, (uint8_t)(e->ready & ~dir));
@ ready-kept: an attempt that failed leaves the readiness as it is
- if (rc == -EAGAIN) volt__fd_mark_drained(e, io->dir, io->snapshot);
+ (void)volt__fd_mark_drained;
@ ready-both: an attempt to read that failed also clears the readiness for writes
- if (e->seq == snapshot.seq && e->mode == VOLT__MODE_EDGE)
- volt__store_rlx(&e->ready, (uint8_t)(e->ready & ~dir)); // rlx: under lock
+ if (e->seq == snapshot.seq && e->mode == VOLT__MODE_EDGE)
+ volt__store_rlx(&e->ready, (uint8_t)(0 * dir));
@ ready-unregistered: a descriptor counts as ready until it is registered, which no wait does
- return mode == VOLT__MODE_EDGE || mode == VOLT__MODE_ALWAYS ? 0 : -EAGAIN;
+ return 0 * mode;
@ read-cancelled: a wait that is cancelled takes bytes, or a message
- if (io->op != VOLT__OP_CALL) volt__check_not_on_stack(cx, io->buf);
- if (!volt__io_begin(cx, node, io, &out)) return out;
+ if (!volt__io_begin(cx, node, io, &out)) {
+ if (!volt_is_pending(out) && io->op < VOLT__OP_ACCEPT)
+ (void)volt__io_call(cx, io, VOLT__FD_SOCKET);
+ return out;
+ }
@ call-cancelled: a wait that is cancelled makes its call once more: a message or a signal is lost
- if (io->op != VOLT__OP_CALL) volt__check_not_on_stack(cx, io->buf);
- if (!volt__io_begin(cx, node, io, &out)) return out;
+ if (!volt__io_begin(cx, node, io, &out)) {
+ if (!volt_is_pending(out) && io->op == VOLT__OP_CALL) (void)io->call(io->fd, io->buf);
+ return out;
+ }
@ message-twice: a message is sent twice, if there is room for both
- ssize_t rc = VOLT_SYS(sendmsg, fd, m, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
+ ssize_t rc = VOLT_SYS(sendmsg, fd, m, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
+ if (rc >= 0) (void)VOLT_SYS(sendmsg, fd, m, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
@ message-peeked: a peek takes the message
- ssize_t rc = VOLT_SYS(recvmsg, fd, m, flags | MSG_DONTWAIT);
+ ssize_t rc = VOLT_SYS(recvmsg, fd, m, (flags | MSG_DONTWAIT) & ~MSG_PEEK);
@ message-empty: an empty message is taken, and the wait for one goes on
- int64_t rc = volt__recvmsg_once(fd, &m->head, m->flags);
- if (rc < 0) return rc;
+ int64_t rc = volt__recvmsg_once(fd, &m->head, m->flags);
+ if (rc <= 0) return rc < 0 ? rc : -EAGAIN;
@ message-cut: a message that was too long for its buffer is no error
- return m->head.msg_flags & MSG_TRUNC && !(m->flags & MSG_TRUNC) ? -EMSGSIZE : rc;
+ return rc;
@ message-anonymous: a message has the address of the one before
- from.len_ = m->head.msg_namelen < sizeof from.sa_ ? m->head.msg_namelen
- : (uint32_t)sizeof from.sa_;
- *m->from = from;
+ (void)from;
@ messages-uncounted: where they go one by one, an error hides those that went before
- if (rc < 0) return i > 0 ? (int64_t)i : rc;
+ if (rc < 0) return rc;
@ messages-all: where they go one by one, the number of messages is that asked for
- if (rc < 0) return i > 0 ? (int64_t)i : rc;
+ if (rc < 0) return i > 0 ? (int64_t)m->n : rc;
@ line-split-end: an end of several bytes is not found if a read has split it
- r->scanned_ += len;
- break;
+ r->scanned_ = r->to_;
+ break;
@ line-scan-kept: what has been searched is not moved with the bytes
- r->scanned_ -= r->from_;
+ (void)0;
@ line-end-left: a line begins with the rest of the end of the last one
- r->from_ = r->scanned_ = is_found ? at + n : r->to_;
+ r->from_ = r->scanned_ = is_found ? at + 1 : r->to_;
@ line-skips-on: behind a line that was too long all others are skipped
- int was_skipped = r->is_skipping_;
- r->is_skipping_ = 0;
+ int was_skipped = r->is_skipping_;
@ line-cut-short: a piece of a line that is too long loses its last byte
- out->len = r->to_ - r->from_ - keep;
+ out->len = r->to_ - r->from_ - keep - 1;
@ line-compacts-late: bytes are moved over those that were not taken
- memmove(r->buf_, r->buf_ + r->from_, r->to_ - r->from_);
- r->to_ -= r->from_;
+ memmove(r->buf_, r->buf_ + r->from_, r->to_ - r->from_ - 1);
+ r->to_ -= r->from_;
@ reader-starts-over: an exact read forgets between two polls how far it was
- if (!r->is_moving_) r->moved_ = 0;
- r->is_moving_ = 1;
- for (;;) {
- r->moved_ += volt__reader_take(r, buf + r->moved_, len - r->moved_);
+ r->moved_ = 0;
+ for (;;) {
+ r->moved_ += volt__reader_take(r, buf + r->moved_, len - r->moved_);
@ record-skip-short: of a record that is too long the length of its header is left
- r->skip_ = (uint64_t)len + header;
+ r->skip_ = (uint64_t)len;
@ writer-drops: a short write counts as a whole one
- w->from_ += (size_t)rc;
+ w->from_ += w->to_ - w->from_;
@ writer-repeats: after a short write its last byte is written again
- w->from_ += (size_t)rc;
+ w->from_ += (size_t)rc < w->to_ - w->from_ && rc > 1 ? (size_t)rc - 1 : (size_t)rc;
@ writer-goes-on: a cancelled put that waits counts what it has moved in the next one, too
- if (!volt_is_pending(out)) w->is_moving_ = 0;
- return out;
+ return out;
@ copy-drops: a short write of a copy counts as a whole one
- c->n_ -= (size_t)volt_value(p);
+ c->n_ = 0;
@ copy-repeats: after a short write a copy begins with the same bytes again
- c->at_ += (size_t)volt_value(p);
+ (void)0;
@ copy-pipe-left: a pipe that was emptied in part is given to the next copy
- if (volt_value(p) > 0) c->in_pipe_ -= (size_t)volt_value(p);
+ if (volt_value(p) > 0) c->in_pipe_ = 0;
@ copy-unpipe-left: of the bytes in a pipe only those that fit into the buffer are copied
- c->in_pipe_ -= (size_t)n;
+ c->in_pipe_ = 0;
@ copy-forgets: a copy that goes on forgets the bytes that were on their way
- c->failed_at_ = 0;
- for (;;) {
+ c->failed_at_ = 0;
+ c->n_ = 0;
+ for (;;) {
@ copy-reads-on: a copy whose write was cancelled reads before it has written the rest
- while (c->in_pipe_ + c->n_ > 0 && c->n_copied_ < c->limit_) {
+ while (c->in_pipe_ + c->n_ > 0 && c->n_copied_ < c->limit_ && c->rc_ != -ECANCELED) {
@ copy-pipe-shared: the pipe of a copy that ends early is kept for others, with its bytes
- if (c->pipe_[0] >= 0) volt__pipe_give(cx->rt_, c, 0);
+ if (c->pipe_[0] >= 0) volt__pipe_give(cx->rt_, c, 1);
@ copy-pipe-lost: the pipe of a copy that ends early stays open
- if (c->pipe_[0] >= 0) volt__pipe_give(cx->rt_, c, 0);
+ (void)0;
@ relay-endless: a relay does not pass on an end
- VOLT_AWAIT(volt_stream_end(cx, r->way_[i].to_));
+ (void)0;
@ relay-idle-early: a relay is idle after half of the time
- return volt__time_add(a > b ? a : b, r->limit_);
+ return volt__time_add(a > b ? a : b, r->limit_ / 2);
@ signal-lost: one call takes two signals, if there are two, and reports one
- do n = VOLT_SYS(read, fd, &info, sizeof info);
+ n = VOLT_SYS(read, fd, &info, sizeof info);
+ if (n > 0) (void)VOLT_SYS(read, fd, &info, sizeof info);
+ do (void)0;
@ child-collected-twice: a child that was collected is waited for again
- if (rc == 0 || rc == -ECHILD) p->state_ = VOLT__PROCESS_COLLECTED;
+ if (rc == -ECHILD) p->state_ = VOLT__PROCESS_COLLECTED;
@ child-signalled-late: a signal is sent to the number of a child that was collected
- int rc = p->state_ == VOLT__PROCESS_RUNS ? volt__process_send(p, signal) : -ESRCH;
+ int rc = VOLT_SYS(kill, p->pid, signal) < 0 ? -errno : 0;
@ child-group-late: the group of a child is ended when its number is free
- if (rc == 0 && p->ends_group_) VOLT_SYS(kill, -p->pid, SIGKILL);
- if (rc == 0 && VOLT_SYS(waitid, P_PID, id, &info, WEXITED | WNOHANG) < 0) rc = -errno;
+ if (rc == 0 && VOLT_SYS(waitid, P_PID, id, &info, WEXITED | WNOHANG) < 0) rc = -errno;
+ if (rc == 0 && p->ends_group_) VOLT_SYS(kill, -p->pid, SIGKILL);
@ child-pidfd-left: the pidfd of a child that was collected stays open
- if (p->state_ == VOLT__PROCESS_COLLECTED && p->pidfd_ >= 0) volt__process_close_pidfd(cx, p);
+
@ child-report-lost: a child that could not start its program counts as started
- while (VOLT_SYS(waitpid, pid, NULL, 0) < 0 && errno == EINTR) {}
- return -error;
+ return 0;
@ child-unticked: without a pidfd, a wait ends after the first look
- if (p->rc_ != -EAGAIN) break;
- VOLT_AWAIT(p->rc_, volt_sleep(cx, VOLT__PROCESS_TICK));
+ break;
@ child-left: the end of a process by a cancelled task does not wait for it
- volt_shield_begin(cx, &p->shield_, VOLT_NEVER);
- VOLT_AWAIT(p->rc_, volt__process_wait(cx, p, out_or_null));
- volt_shield_end(cx, &p->shield_);
+ VOLT_AWAIT(p->rc_, volt__process_wait(cx, p, out_or_null));
@ file-cached-short: a part of the bytes that is cached counts as all
- return is_end ? n : 0;
+ return n + 0 * is_end;
@ file-left-open: a close that was cancelled before it ran leaves the file open
- if (!volt_is_pending(p) && !op->is_run_)
+ if (0)
@ send-offset: the offset of a file advances by what was asked for
- if (n > 0) *a->offset = at;
+ if (n > 0) *a->offset += (int64_t)a->len;
@ info-first: only the first item of control data is read
- if (c->cmsg_len < sizeof *c || left < step || left - step < sizeof *c) return NULL;
+ if (c->cmsg_len < sizeof *c || left < step || left - step < sizeof *c || left) return NULL;
@ info-no-source: an answer is sent from any address
- if (family == AF_INET)
- memcpy(&v4.ipi_spec_dst, info->local.sa_ + offsetof(struct sockaddr_in, sin_addr), 4);
+ (void)0;
@ capture-cut: the output of a process that does not fit is no error
- if (arm->rc_ > 0) arm->rc_ = -EMSGSIZE;
+ if (arm->rc_ > 0) arm->rc_ = 0;
@ capture-full: output that just fits is an error
- if (arm->rc_ > 0) arm->rc_ = -EMSGSIZE;
+ if (arm->rc_ >= 0) arm->rc_ = -EMSGSIZE;
@ capture-left: a capture that is cancelled leaves its process
- volt_shield_begin(cx, &c->shield_, VOLT_NEVER);
- VOLT_AWAIT(volt_process_end(cx, &c->process_, c->grace, &c->end));
- volt_shield_end(cx, &c->shield_);
+ (void)0;
@ capture-open: a capture leaves its pipes open
- volt_process_close(cx, &c->process_);
- VOLT_END(c->rc_);
+ VOLT_END(c->rc_);
END
}

# Writes the header with the defect called `name`, or an error.
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

if [ -n "${APPLY:-}" ]; then
    passed=0 failed=0
    for name in $(list | sed -n 's/^@ \([a-z-]*\).*:.*/\1/p'); do
        if mutate "$name"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
        rm -f "$out/$name.h"
    done
    echo "mutants: $passed fit, $failed do not"
    [ "$passed" -gt 0 ] && [ "$failed" = 0 ]
    exit
fi

found=0 missed=0
for name in $(list | sed -n 's/^@ \([a-z-]*\).*:.*/\1/p'); do
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    if hunt "$name"; then found=$((found + 1)); else missed=$((missed + 1)); fi
done
echo "mutants: $found found, $missed not found"
[ $missed = 0 ]
