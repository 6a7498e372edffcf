// SPDX-License-Identifier: MIT OR 0BSD
// Loads shared objects that hold a copy of volt.h each, beside its own copy, and runs all at once;
// see programs.sh.
//   host OBJECT...
// Each OBJECT must give a function `plugin`, and must be gone when it has been closed.
#include "unit.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { MOST = 8 };

typedef struct {
    pthread_t thread;
    void *object;
    int (*run)(void);
    int rc;
} plugin;

static void *run_plugin(void *arg) {
    plugin *p = (plugin *)arg;
    p->rc = p->run();
    return NULL;
}
static int fail(const char *path, const char *why) {
    printf("%s: %s\n", path, why);
    return 1;
}
static int start(plugin *p, const char *path) {
    p->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!p->object) return fail(path, dlerror());
    *(void **)&p->run = dlsym(p->object, "plugin");
    if (!p->run) return fail(path, "no function `plugin`");
    if (pthread_create(&p->thread, NULL, run_plugin, p) != 0) return fail(path, "no thread");
    return 0;
}
static int finish(plugin *p, const char *path) {
    pthread_join(p->thread, NULL);
    if (p->rc != 0) return fail(path, "its tasks went wrong");
    dlclose(p->object);
    return dlopen(path, RTLD_NOW | RTLD_NOLOAD) ? fail(path, "still loaded") : 0;
}

int main(int argc, char **argv) {
    static plugin plugins[MOST];
    int n_bad = 0, n = argc - 1 < MOST ? argc - 1 : MOST;
    for (int i = 0; i < n; i++)
        if (start(&plugins[i], argv[i + 1]) != 0) return 1;
    n_bad += third() != 0;
    for (int i = 0; i < n; i++) n_bad += finish(&plugins[i], argv[i + 1]);
    return n_bad != 0;
}
