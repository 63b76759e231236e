/* A handler that sends each record to a Unix datagram socket, beside the trace. The parameters are the socket's path:
 *
 *     gcc -shared -fPIC $(pkg-config --cflags threadt) -o send_datagrams.so send_datagrams.c
 *     trace-cat run --handler send_datagrams.so:/run/records.socket PROGRAM
 *
 * A record is lost if the receiver is slow or has gone; the number of those before it is in `unused`, up to 255. */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <threadt.h>
#include <unistd.h>

THREADT_HANDLER

static int sender = -1;
static _Atomic unsigned lost;

int threadt_handler_init(const char *parameters)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(parameters);
    if (length == 0 || length >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, parameters, length);
    /* Each process has its own socket: a child does not send through its parent's. */
    if (sender >= 0)
        close(sender);
    sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sender >= 0 && connect(sender, (struct sockaddr *)&address, sizeof address) == 0)
        return THREADT_BESIDE;
    if (sender >= 0)
        close(sender);
    sender = -1;
    return -1;
}

void threadt_handler_event(const struct threadt_record *record)
{
    struct threadt_record copy = *record;
    unsigned before = atomic_exchange(&lost, 0);
    copy.unused[0] = before > 255 ? 255 : (uint8_t)before;
    if (send(sender, &copy, sizeof copy, MSG_NOSIGNAL) != (ssize_t)sizeof copy)
        lost += before + 1;
}

void threadt_handler_fini(void)
{
    close(sender);
    sender = -1;
}
