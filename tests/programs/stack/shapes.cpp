// Fails to lock a mutex in functions of many shapes, and prints each stack.
#include <alloca.h>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <threads.h>
#include <ucontext.h>
#include <vector>

#include "addresses.h"

#define SHAPE __attribute__((noinline)) static

static volatile int zero = 0;

SHAPE int recursive(int depth, const char *shape)
{
	if (depth == 0) {
		fail_here(shape);
		return zero;
	}
	return recursive(depth - 1, shape) + 1;
}

SHAPE int variable_frame(int size)
{
	char *memory = static_cast<char *>(alloca(size));
	memset(memory, size, size);
	recursive(2, "variable frame");
	return memory[size / 2];
}

SHAPE int aligned_frame(int size)
{
	alignas(64) volatile char memory[128];
	char *more = static_cast<char *>(alloca(size));
	memory[0] = 1;
	more[0] = 2;
	recursive(1, "aligned frame");
	return memory[0] + more[0];
}

SHAPE int large_frame()
{
	volatile char memory[300000];
	memory[zero] = 1;
	recursive(1, "large frame");
	return memory[zero];
}

static int compare(const void *left, const void *right)
{
	static bool done = false;
	if (!done) {
		done = true;
		recursive(1, "callback");
	}
	return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

struct Base {
	virtual ~Base() = default;
	virtual int call(const std::function<int(int)> &function) = 0;
};

struct Derived : Base {
	int call(const std::function<int(int)> &function) override { return function(3) + 1; }
};

struct Guard {
	~Guard() { recursive(1, "destructor in unwinding"); }
};

SHAPE void throw_through()
{
	Guard guard;
	if (zero == 0)
		throw std::runtime_error("expected");
}

SHAPE void exceptions()
{
	try {
		throw_through();
	} catch (const std::exception &) {
		recursive(1, "exception handler");
	}
}

static void handle(int) { recursive(1, "signal"); }

static void handle_elsewhere(int) { recursive(1, "signal on an alternate stack"); }

SHAPE void interrupt(void *stack, size_t size, int flags)
{
	stack_t alternate = {};
	alternate.ss_sp = stack;
	alternate.ss_size = size;
	alternate.ss_flags = flags;
	sigaltstack(&alternate, nullptr);
	struct sigaction action = {};
	action.sa_handler = handle_elsewhere;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, nullptr);
	raise(SIGUSR2);
	alternate.ss_flags = SS_DISABLE;
	sigaltstack(&alternate, nullptr);
}

/* Alternate stacks below and above the stack that is interrupted. */
SHAPE void interrupt_on_stacks()
{
	static char memory[64 * 1024];
	interrupt(memory, sizeof memory, 0);
	interrupt(memory, sizeof memory, 1 << 31 /* SS_AUTODISARM */);
	/* In the frame of a caller. */
	char above[64 * 1024];
	interrupt(above, sizeof above, 0);
}

static void routine() { recursive(1, "once"); }

static void *thread(void *)
{
	recursive(2, "thread");
	interrupt_on_stacks();
	return nullptr;
}

static int c11_thread(void *)
{
	recursive(2, "C11 thread");
	return 0;
}

static ucontext_t outer, inner;

static void coroutine() { recursive(2, "coroutine"); }

SHAPE void run_coroutine()
{
	static char stack[64 * 1024];
	getcontext(&inner);
	inner.uc_stack.ss_sp = stack;
	inner.uc_stack.ss_size = sizeof stack;
	inner.uc_link = &outer;
	makecontext(&inner, coroutine, 0);
	swapcontext(&outer, &inner);
}

struct AtStart {
	AtStart()
	{
		pthread_mutex_lock(&held);
		recursive(1, "constructor");
	}
	~AtStart() { recursive(1, "end"); }
};
static AtStart at_start;

int main()
{
	recursive(3, "recursive");
	recursive(90, "deep");
	variable_frame(100 + zero);
	aligned_frame(100 + zero);
	large_frame();
	int numbers[] = {3, 1, 2};
	qsort(numbers, 3, sizeof numbers[0], compare);
	std::vector<std::unique_ptr<Base>> objects;
	objects.push_back(std::make_unique<Derived>());
	int sum = 0;
	for (const auto &object : objects)
		sum += object->call([&](int depth) { return recursive(depth, "function object") + sum; });
	exceptions();
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	interrupt_on_stacks();
	pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, routine);
	pthread_t id;
	pthread_create(&id, nullptr, thread, nullptr);
	pthread_join(id, nullptr);
	thrd_t c11;
	thrd_create(&c11, c11_thread, nullptr);
	thrd_join(c11, nullptr);
	run_coroutine();
	return sum == 0;
}
