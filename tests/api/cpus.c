// SPDX-License-Identifier: MIT OR 0BSD
// How many workers a runtime takes by itself: cgroup quotas, read from a tree of files made here.
#define _GNU_SOURCE 1 // before the first libc header
#include <sched.h>
static int is_affinity_unknown;
static int ask_affinity(int pid, size_t size, cpu_set_t *set) {
    return is_affinity_unknown ? -1 : sched_getaffinity(pid, size, set);
}
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static char tree[64];
static int is_rooted; // the files of the system are those below tree
static int ask_open(const char *path, int flags) {
    char below[600];
    snprintf(below, sizeof below, "%s%s", is_rooted ? tree : "", path);
    return open(below, flags);
}
static long n_online; // 0: the system's
static long ask_system(int what) { return n_online ? n_online : sysconf(what); }
#define sched_getaffinity ask_affinity
#define open ask_open
#define sysconf ask_system
#define VOLT_IMPLEMENTATION
#include "volt.h"
#undef sched_getaffinity
#undef open
#undef sysconf
#include "test.h"
#include <sys/stat.h>


static void put(const char *file, const char *text) {
    char path[512], *slash;
    snprintf(path, sizeof path, "%s%s", tree, file);
    for (slash = path + strlen(tree) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = 0;
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    FILE *f = fopen(path, "w");
    CHECK(f);
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}
static void drop(const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", tree, file);
    CHECK_EQ(unlink(path), 0);
}
static void tree_start(void) {
    snprintf(tree, sizeof tree, "/tmp/volt-cpus-XXXXXX");
    CHECK(mkdtemp(tree));
}
static void tree_end(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", tree);
    CHECK_EQ(system(command), 0);
}

TEST(quota_is_the_least_of_all_cgroups_above) {
    tree_start();
    CHECK_EQ(volt__quota(tree), 0); // nothing there at all
    put("/proc/self/cgroup", "12:cpu:/old\n0::/a.slice/b.service\n");
    CHECK_EQ(volt__quota(tree), 0);
    put("/sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n");
    CHECK_EQ(volt__quota(tree), 0);
    put("/sys/fs/cgroup/a.slice/cpu.max", "250000 100000\n");
    CHECK_EQ(volt__quota(tree), 3); // rounded up
    put("/sys/fs/cgroup/a.slice/b.service/cpu.max", "150000 100000\n");
    CHECK_EQ(volt__quota(tree), 2);
    put("/sys/fs/cgroup/a.slice/b/cpu.max", "1000 100000\n"); // none of ours
    CHECK_EQ(volt__quota(tree), 2);
    put("/sys/fs/cgroup/cpu.max", "0 100000\n"); // no limit does not lift another
    CHECK_EQ(volt__quota(tree), 2);
    put("/sys/fs/cgroup/cpu.max", "1000 100000\n");
    CHECK_EQ(volt__quota(tree), 1); // never less than one
    put("/proc/self/cgroup", "0::/\n");
    CHECK_EQ(volt__quota(tree), 1);
    tree_end();
}
TEST(quota_of_cgroup_version_one_counts_without_version_two) {
    tree_start();
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(volt__quota(tree), 0);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    CHECK_EQ(volt__quota(tree), 4);
    put("/proc/self/cgroup", "12:cpu:/old\n"); // a group, but none of version two
    CHECK_EQ(volt__quota(tree), 4);
    drop("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    CHECK_EQ(volt__quota(tree), 0);
    tree_end();
}
// Neither for volt__quota nor for the number of workers. (One that is too long for a number is one
// that no machine reaches.)
TEST(malformed_quota_is_no_limit) {
    static const struct {
        const char *text;
        uint32_t quota;
    } rows[] = { { "", 0 }, { "\n", 0 }, { "x", 0 }, { "0 100000", 0 }, { "100000 0", 0 },
                 { "100000", 0 }, { "- 1", 0 }, { "-1 100000", 0 }, { " 100000 100000", 0 },
                 { "100000x 100000", 0 }, { "100000 max", 0 }, { "100000 -1", 0 },
                 { "99999999999999999999999999 1", VOLT_MAX_WORKERS } };
    static const char *const groups[] = { "", "\n", "0::", "0:/", "1::/", "12:cpu:/\n" };
    tree_start();
    is_affinity_unknown = is_rooted = 1;
    n_online = 3;
    put("/proc/self/cgroup", "0::/\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put("/sys/fs/cgroup/cpu.max", rows[i].text);
        CHECK_EQ(volt__quota(""), rows[i].quota);
        CHECK_EQ(volt__cpu_count(), 3);
    }
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        put("/proc/self/cgroup", groups[i]);
        CHECK_EQ(volt__quota(""), 0);
        CHECK_EQ(volt__cpu_count(), 3);
    }
    put("/proc/self/cgroup", "0::/"); // well-formed, but for the end of its line
    CHECK_EQ(volt__quota(""), 2);
    CHECK_EQ(volt__cpu_count(), 2);
    tree_end();
}
// The number of processors is that of the affinity mask of this process.
TEST(cpu_count_follows_affinity_mask) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK(volt__cpu_count() >= 1 && volt__cpu_count() <= (uint32_t)CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && CPU_COUNT(&one) == 0) CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(volt__cpu_count(), 1);
}
// More of them than the mask has room for: the system is asked how many there are.
TEST(cpu_count_is_all_cpus_without_affinity_mask) {
    uint32_t all = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), quota = volt__quota("");
    is_affinity_unknown = 1;
    CHECK_EQ(volt__cpu_count(), quota > 0 && quota < all ? quota : all);
}

TEST(cpu_count_follows_quota_where_it_is_less) {
    tree_start();
    put("/proc/self/cgroup", "0::/\n");
    is_affinity_unknown = is_rooted = 1;
    n_online = 3;
    CHECK_EQ(volt__cpu_count(), 3);
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    CHECK_EQ(volt__cpu_count(), 3);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(volt__cpu_count(), 2);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    CHECK_EQ(volt__cpu_count(), 1);
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    n_online = -1; // unknown, too
    CHECK_EQ(volt__cpu_count(), 1);
    tree_end();
}

// ---- the parts of it

TEST(path_that_does_not_fit_is_refused) {
    char out[64];
    const char want[] = "/r/sys/fs/cgroup/a/cpu.max";
    for (size_t cap = 1; cap <= sizeof out; cap++) {
        memset(out, '#', sizeof out);
        size_t n = volt__path(out, cap, "/r", "/a/b", 2, "/cpu.max");
        CHECK_EQ(n, cap >= sizeof want ? sizeof want - 1 : 0);
        if (n) CHECK_STR(out, want);
        for (size_t i = cap; i < sizeof out; i++) CHECK_EQ(out[i], '#');
    }
}
static uint32_t numbers_of(const char *text, int64_t n[4]) {
    char path[128];
    snprintf(path, sizeof path, "%s/numbers", tree);
    put("/numbers", text);
    for (int i = 0; i < 4; i++) n[i] = -7;
    return volt__read_numbers(path, n);
}
TEST(read_numbers_reads_at_most_two) {
    char path[128], text[16];
    int64_t n[4];
    tree_start();
    CHECK_EQ(numbers_of("12 345 6789 1", n), 2);
    CHECK(n[0] == 12 && n[1] == 345 && n[2] == -7);
    CHECK_EQ(numbers_of("90 \n", n), 1);
    CHECK(n[0] == 90 && n[1] == -7);
    CHECK_EQ(numbers_of("1  2", n), 2);
    CHECK(n[0] == 1 && n[1] == 2);
    CHECK_EQ(numbers_of("7", n), 1);
    CHECK(n[0] == 7 && n[1] == -7);
    // Digits are taken while another one fits for sure.
    CHECK_EQ(numbers_of("5764607523034234875", n), 2);
    CHECK(n[0] == INT64_MAX / 16 && n[1] == 5);
    CHECK_EQ(numbers_of("5600000000000000001", n), 1);
    CHECK_EQ(n[0], 5600000000000000001);
    CHECK_EQ(numbers_of("0/", n), 1);
    CHECK_EQ(numbers_of("1:2", n), 1);
    CHECK_EQ(numbers_of("max 5", n), 0);
    CHECK_EQ(n[0], -7);
    // As much of a file as there is room for, and a 0 behind it.
    snprintf(path, sizeof path, "%s/numbers", tree);
    memset(text, '#', sizeof text);
    put("/numbers", "abcdefgh");
    CHECK_EQ(volt__read_text(path, text, 8), 7);
    CHECK_STR(text, "abcdefg");
    CHECK_EQ(text[8], '#');
    put("/numbers", "");
    CHECK_EQ(volt__read_text(path, text, 8), 0);
    CHECK_EQ(text[0], 0);
    put("/numbers", "a");
    CHECK_EQ(close(STDIN_FILENO), 0); // the number of the file is 0 then
    CHECK_EQ(volt__read_text(path, text, 8), 1);
    CHECK_STR(text, "a");
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO); // was closed again
    tree_end();
}
TEST(quota_is_rounded_up_to_whole_cpus) {
    CHECK_EQ(volt__quota_cpus(0, 100), 0);
    CHECK_EQ(volt__quota_cpus(100, 0), 0);
    CHECK_EQ(volt__quota_cpus(-1, 100), 0);
    CHECK_EQ(volt__quota_cpus(1, 1), 1);
    CHECK_EQ(volt__quota_cpus(1, 100), 1);
    CHECK_EQ(volt__quota_cpus(100, 100), 1);
    CHECK_EQ(volt__quota_cpus(101, 100), 2);
    CHECK_EQ(volt__quota_cpus(200, 100), 2);
    CHECK_EQ(volt__quota_cpus(INT64_MAX / 32, 1), VOLT_MAX_WORKERS);
    CHECK_EQ(volt__quota_cpus(5000000000000000000, 5000000000000000000), 1); // no sum of them
}
