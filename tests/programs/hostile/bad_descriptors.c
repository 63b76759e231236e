// `bad_descriptors NTH LIBRARY PROGRAM ARGUMENT…`: runs the program, in which the NTH call on a descriptor that the library of
// this name makes fails with EBADF, as where the program has just closed a descriptor that is not its own; 0 for none.
//
// Prints how many such calls there were, and ends as the program.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../check.h"

static const int calls[] = {SYS_fstat,    SYS_fallocate, SYS_fstatfs, SYS_fcntl,     SYS_pread64,
                            SYS_pwrite64, SYS_fchmod,    SYS_read,    SYS_ftruncate, SYS_getdents64};
enum { CALLS = sizeof calls / sizeof *calls };

static int install(void) {
    struct sock_filter filter[CALLS + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < CALLS; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], CALLS - i, 0);
    filter[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {CALLS + 3, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void send_descriptor(int to, int fd) {
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK(sendmsg(to, &message, 0) == 1);
}

static int receive_descriptor(int from) {
    int fd;
    char byte, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    CHECK(recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

// Whether the instruction is one of the library's code.
static int is_in(const char *library, pid_t pid, unsigned long long instruction) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    int found = 0;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long long start, end;
        found = sscanf(line, "%llx-%llx", &start, &end) == 2 && start <= instruction && instruction < end &&
                strstr(line, library);
    }
    if (maps)
        fclose(maps);
    return found;
}

int main(int argc, char **argv) {
    CHECK(argc > 3);
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int listener = install();
        CHECK(listener >= 0);
        send_descriptor(ends[1], listener);
        close(listener);
        execv(argv[3], argv + 3);
        CHECK(0);
    }
    int listener = receive_descriptor(ends[0]);
    long met = 0, nth = atol(argv[1]);
    for (;;) {
        struct pollfd event = {listener, POLLIN, 0};
        CHECK(poll(&event, 1, -1) == 1);
        // Nobody is under the filter any more.
        if (!(event.revents & POLLIN))
            break;
        struct seccomp_notif question = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question))
            continue;
        struct seccomp_notif_resp answer = {.id = question.id};
        if (is_in(argv[2], question.pid, question.data.instruction_pointer) && ++met == nth)
            answer.error = -EBADF;
        else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    printf("%ld\n", met);
    return WEXITSTATUS(status);
}
