// Seccomp filters that no hook sees: it is the kernel that is to judge a call, and not the recorder.

#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"
#include "instruction.h"

// Puts a filter in force, by an instruction of the program's own.
static inline void filter_unseen(struct sock_filter *filter, int length) {
    struct sock_fprog program = {length, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(by_instruction(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program) == 0);
}
