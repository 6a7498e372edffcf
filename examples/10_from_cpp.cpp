// SPDX-License-Identifier: MIT OR 0BSD
// From C++17: the same macros; C++ objects are reached by pointer.
//
// The state of a task is copied as bytes and never destroyed: it must be a plain struct, which the
// compiler checks. So objects with constructors live elsewhere, and the state points to them:
//   borrowed  from an owner that outlives the task; a group makes sure of that
//   owned     the task deletes them. A spawn that succeeds takes them over, one that fails does not
// Exceptions end below the poll functions, which are noexcept: what may throw goes into a function
// that gives -errno instead. No initialised local shares a block with an await: here an error.
//
//     c++ -std=c++17 -I. -pthread examples/10_from_cpp.cpp -o from_cpp && ./from_cpp
//
// Expected output:
// no number: two
// HELLO FROM C++
// sum of the others: 42
#define VOLT_IMPLEMENTATION
#include "volt.h"
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

// State that tasks share is atomic, or has a lock that no task holds across an await.
class ledger {
    std::atomic<int> sum_{ 0 };

  public:
    int add(const std::string &number) noexcept {
        try {
            sum_ += std::stoi(number);
            return 0;
        } catch (const std::exception &) {
            return -EINVAL;
        }
    }
    int sum() const noexcept { return sum_; }
};

struct clerk { // borrows both
    volt_frame frame;
    ledger *book;
    const std::string *word;
};

volt_poll clerk_run(volt_cx *cx, void *arg) noexcept {
    auto *c = static_cast<clerk *>(arg);
    VOLT_BEGIN(cx, c);
    VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));
    VOLT_END(c->book->add(*c->word));
}

struct shouter { // owns its text
    volt_frame frame;
    std::string *text;
};

volt_poll shouter_run(volt_cx *cx, void *arg) noexcept {
    auto *s = static_cast<shouter *>(arg);
    VOLT_BEGIN(cx, s);
    for (char &c : *s->text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    VOLT_AWAIT(volt_yield(cx)); // from here on perhaps on another thread
    std::printf("%s\n", s->text->c_str());
    delete s->text;
    VOLT_END(0);
}

struct app {
    volt_frame frame;
    volt_group clerks;
    volt_handle shouter;
    ledger *book;
    const std::vector<std::string> *words;
    std::unique_ptr<std::string> *text;
    uint64_t id; // of a clerk: the number of its word
    int64_t rc;
};

volt_poll app_run(volt_cx *cx, void *arg) noexcept {
    auto *a = static_cast<app *>(arg);
    VOLT_BEGIN(cx, a);
    volt_group_collect(&a->clerks);
    for (const auto &word : *a->words)
        if (a->rc == 0)
            a->rc = VOLT_GROUP_SPAWN(cx, &a->clerks, clerk_run, clerk{ {}, a->book, &word });
    while (a->rc == 0) {
        VOLT_AWAIT(a->rc, volt_group_next(cx, &a->clerks, &a->id));
        if (a->rc != -EINVAL) continue;
        std::printf("no number: %s\n", (*a->words)[a->id].c_str());
        a->rc = 0;
    }
    VOLT_AWAIT(volt_group_close(cx, &a->clerks)); // also the way out of every error above
    if (a->rc != -ENOENT) VOLT_RETURN(a->rc);     // -ENOENT: every result has been taken
    a->rc = VOLT_SPAWN(cx, &a->shouter, shouter_run, shouter{ {}, a->text->get() });
    if (a->rc < 0) VOLT_RETURN(a->rc);
    static_cast<void>(a->text->release());
    VOLT_AWAIT(a->rc, volt_join(cx, &a->shouter));
    VOLT_END(a->rc);
}

} // namespace

int main() {
    ledger book;
    const std::vector<std::string> words{ "40", "two", "2" };
    auto text = std::make_unique<std::string>("hello from C++");
    app a{ {}, {}, {}, &book, &words, &text, 0, 0 };
    volt_config config{};
    config.log.fn = [](void *, int, const char *what) { std::printf("volt: %s\n", what); };
    const int rc = volt_run(&config, app_run, &a);
    std::printf("sum of the others: %d\n", book.sum());
    return rc < 0;
}
