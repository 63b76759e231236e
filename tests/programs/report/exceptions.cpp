// Initialises mutexes where exceptions lead: in destructors of frames that are unwound, in handlers, in destructors of exceptions, in
// cleanups of arrays and constructors, in functions that exceptions go through, and in what is called where one may not leave a
// function. Each is a place whose frames are those of a debugger, inlined functions included.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "../check.h"

#define APART __attribute__((noinline)) static
#define INLINED static inline __attribute__((always_inline))

static volatile int zero = 0;

// A debugger stops at the call.
APART void initialise() {
    pthread_mutex_t mutex;
    CHECK(!pthread_mutex_init(&mutex, nullptr));
    CHECK(!pthread_mutex_destroy(&mutex));
}

INLINED void initialise_inlined() {
    initialise();
    asm volatile("");
}

struct Guard {
    int calls;
    explicit Guard(int calls) : calls(calls) {}
    inline __attribute__((always_inline)) ~Guard() {
        for (int call = 0; call < calls; call++)
            initialise_inlined();
    }
};

struct Failure : std::runtime_error {
    bool is_loud;
    explicit Failure(bool is_loud) : std::runtime_error("failure"), is_loud(is_loud) {}
    ~Failure() override {
        if (is_loud)
            initialise_inlined();
    }
};

APART int throws(int depth, bool is_loud) {
    Guard guard(depth == 1);
    if (depth == 0)
        throw Failure(is_loud);
    return throws(depth - 1, is_loud) + zero;
}

// The frames from the throw up to here are left; the handler is in a part of the function that stands elsewhere.
APART int catches(int depth) {
    std::string text(100 + zero, 'x');
    try {
        return throws(depth, false);
    } catch (const std::exception &) {
        initialise_inlined();
        return static_cast<int>(text.size());
    }
}

APART int rethrows() {
    Guard guard(1);
    try {
        return throws(2, true);
    } catch (const Failure &) {
        initialise();
        throw;
    }
}

struct Member {
    int number;
    explicit Member(int number) : number(number) {
        if (number == 2)
            throw Failure(false);
    }
    ~Member() { initialise_inlined(); }
};

struct Built {
    Member first, second;
    Built() try : first(1), second(2) {
    } catch (const Failure &) {
        initialise();
    }
};

struct Counted {
    static int made;
    Counted() {
        if (++made == 3)
            throw Failure(false);
    }
    ~Counted() { initialise(); }
};
int Counted::made = 0;

APART void leaves_array() {
    try {
        std::unique_ptr<Counted[]> counted(new Counted[static_cast<size_t>(4 + zero)]);
        CHECK(counted == nullptr);
    } catch (const Failure &) {
        initialise_inlined();
    }
}

struct Base {
    virtual ~Base() = default;
    virtual int call(const std::function<int(int)> &function, int depth) = 0;
};
struct Other {
    virtual ~Other() = default;
    virtual int other(int depth) = 0;
};
struct Derived final : Base, Other {
    int call(const std::function<int(int)> &function, int depth) override { return function(depth) + 1; }
    // Called by way of a thunk that corrects the pointer.
    int other(int depth) override { return call([this](int left) { return left == 0 ? catches(2) : other(left - 1); }, depth) + 1; }
};

template <typename Iterator> INLINED void sort_inlined(Iterator begin, Iterator end) {
    int comparisons = 0;
    std::sort(begin, end, [&comparisons](int left, int right) {
        if (++comparisons == 3)
            initialise_inlined();
        return left < right;
    });
}

APART int compares(const void *left, const void *right) {
    initialise_inlined();
    return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

// Before main, and after it.
struct Global {
    Global() { initialise_inlined(); }
    ~Global() { initialise(); }
} global;

// The runtime calls it from within the search for a handler.
static void on_termination() {
    initialise_inlined();
    std::exit(0);
}

APART int never_throws() noexcept {
    Guard guard(0);
    return throws(1, false) + zero;
}

int main() {
    std::set_terminate(on_termination);
    catches(3);
    try {
        rethrows();
    } catch (...) {
        initialise_inlined();
    }
    try {
        Built built;
    } catch (const Failure &) {
        initialise();
    }
    leaves_array();
    std::unique_ptr<Other> other = std::make_unique<Derived>();
    CHECK(other->other(2) > 0);
    std::vector<int> numbers{3, 1, 2, 5, 4};
    sort_inlined(numbers.begin(), numbers.end());
    std::array<int, 2> pair{2, 1};
    std::qsort(pair.data(), pair.size(), sizeof(int), compares);
    std::once_flag once;
    std::call_once(once, [] { initialise_inlined(); });
    return never_throws();
}
