/* Clients of a chat API: `load PORT CONNECTIONS SECONDS RATE REQUESTS BODIES`.
 *
 * Each connection asks again as soon as it is answered; with a RATE (requests a second, else 0)
 * requests are due at even times instead, and one that finds no free connection is late. Ends after
 * SECONDS or, unless it is 0, REQUESTS. BODIES is a file with one body a line; they take turns.
 * Prints one JSON object: latency is from when a request is due to the end of its answer.
 */
#define _GNU_SOURCE
#include "http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 262144, MOST_CONNECTING = 200 };
enum state { CONNECTING, FREE, ASKING };

struct connection {
    int fd;
    enum state state;
    const char *out;
    size_t out_left;
    uint64_t due_ns;
    char head[8192];
    size_t head_size;
    int in_body, failed, must_close, last_was_newline;
    struct body body;
    struct connection *next_free;
};

static int epoll_fd, port, rate, connecting, open_connections;
static struct connection *connections, *free_connections;
static char **requests;
static size_t *request_sizes, request_count;
static uint64_t asked, wanted, answered, errors, events_seen, *latencies_ns;
static size_t latency_room;
static uint64_t began_ns, ends_ns;
static char reading[READ_BYTES];

static void fail(const char *what) {
    perror(what);
    exit(4);
}

static void read_bodies(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    while ((size = getline(&line, &room, file)) > 0) {
        if (line[size - 1] == '\n') size--;
        requests = realloc(requests, (request_count + 1) * sizeof *requests);
        request_sizes = realloc(request_sizes, (request_count + 1) * sizeof *request_sizes);
        char head[512];
        int length = snprintf(head, sizeof head,
                              "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: "
                              "application/json\r\ncontent-length: %zd\r\n\r\n",
                              port, size);
        char *whole = malloc((size_t)length + (size_t)size);
        if (!requests || !request_sizes || !whole) fail("malloc");
        memcpy(whole, head, (size_t)length);
        memcpy(whole + length, line, (size_t)size);
        requests[request_count] = whole;
        request_sizes[request_count++] = (size_t)length + (size_t)size;
    }
    fclose(file);
    free(line);
    if (!request_count) exit(2);
}

static void begin_connecting(struct connection *c) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->fd < 0) fail("socket");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) fail("connect");
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
    c->state = CONNECTING;
    connecting++;
}

static void send_rest(struct connection *c) {
    while (c->out_left) {
        ssize_t sent = send(c->fd, c->out, c->out_left, MSG_NOSIGNAL);
        if (sent < 0) return;
        c->out += sent;
        c->out_left -= (size_t)sent;
    }
}

static void ask(struct connection *c, uint64_t due_ns) {
    size_t which = asked++ % request_count;
    c->state = ASKING;
    c->due_ns = due_ns;
    c->out = requests[which];
    c->out_left = request_sizes[which];
    c->head_size = 0;
    c->in_body = c->failed = c->must_close = c->last_was_newline = 0;
    send_rest(c);
}

static int more(void) { return (!wanted || asked < wanted) && now_ns() < ends_ns; }

static void is_free(struct connection *c) {
    if (!rate && more()) {
        ask(c, now_ns());
        return;
    }
    c->state = FREE;
    c->next_free = free_connections;
    free_connections = c;
}

static void reopen(struct connection *c) {
    close(c->fd);
    begin_connecting(c);
}

static void complete(struct connection *c) {
    if (answered == latency_room) {
        latency_room = latency_room ? 2 * latency_room : 65536;
        latencies_ns = realloc(latencies_ns, latency_room * sizeof *latencies_ns);
        if (!latencies_ns) fail("realloc");
    }
    if (c->failed) errors++;
    else latencies_ns[answered++] = now_ns() - c->due_ns;
    if (c->must_close) reopen(c);
    else is_free(c);
}

static void count_events(struct connection *c, const char *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        int newline = data[i] == '\n';
        events_seen += (uint64_t)(newline && c->last_was_newline);
        c->last_was_newline = newline;
    }
}

static void take(struct connection *c, char *data, size_t size) {
    if (c->state != ASKING) return;
    if (!c->in_body) {
        size_t part = sizeof c->head - c->head_size < size ? sizeof c->head - c->head_size : size;
        memcpy(c->head + c->head_size, data, part);
        char *end = head_end(c->head, c->head_size + part);
        if (!end) {
            c->head_size += part;
            return;
        }
        size_t taken = (size_t)(end - c->head) - c->head_size;
        data += taken;
        size -= taken;
        c->failed = memcmp(c->head + 8, " 200", 4) != 0;
        c->body = body_of(c->head, end, BY_CLOSE);
        char *value = header(c->head, end, "connection:");
        c->must_close = value && !strncasecmp(value, "close", 5);
        c->in_body = 1;
    }
    if (c->body.framing == BY_CHUNKS) count_events(c, data, size);
    read_body(&c->body, data, size);
    if (c->body.done) complete(c);
}

static void receive(struct connection *c) {
    for (;;) {
        ssize_t size = recv(c->fd, reading, sizeof reading, 0);
        if (size < 0 && errno == EAGAIN) return;
        if (size > 0) {
            take(c, reading, (size_t)size);
            continue;
        }
        if (c->state == ASKING) errors++;
        if (c->state == FREE) return; /* the pool has it; asking it fails and is counted then */
        reopen(c);
        return;
    }
}

static void happened(struct connection *c, uint32_t what) {
    if (c->state == CONNECTING && what & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        connecting--;
        if (what & (EPOLLERR | EPOLLHUP)) {
            errors++;
            close(c->fd);
            open_connections--;
            return;
        }
        is_free(c);
    }
    if (c->out_left && what & EPOLLOUT) send_rest(c);
    if (what & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c);
}

static int ascending(const void *one, const void *two) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)two;
    return (a > b) - (a < b);
}

static double quantile_us(double share) {
    if (!answered) return -1;
    return (double)latencies_ns[(size_t)((double)(answered - 1) * share)] / 1000.0;
}

static void report(void) {
    qsort(latencies_ns, answered, sizeof *latencies_ns, ascending);
    printf("{\"requests\": %lu, \"errors\": %lu, \"events\": %lu, \"seconds\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"max_us\": %.1f}\n",
           answered, errors, events_seen, (double)(now_ns() - began_ns) / 1e9, quantile_us(0.5), quantile_us(0.99),
           quantile_us(1.0));
}

int main(int count, char **words) {
    if (count != 7) {
        fputs("usage: load PORT CONNECTIONS SECONDS RATE REQUESTS BODIES\n", stderr);
        return 2;
    }
    port = atoi(words[1]);
    int all = atoi(words[2]), opened = 0;
    rate = atoi(words[4]);
    wanted = strtoul(words[5], NULL, 10);
    read_bodies(words[6]);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    connections = calloc((size_t)all, sizeof *connections);
    epoll_fd = epoll_create1(0);
    if (!connections || epoll_fd < 0) fail("start");
    open_connections = all;
    began_ns = now_ns();
    ends_ns = began_ns + (uint64_t)(atof(words[3]) * 1e9);
    uint64_t due_ns = began_ns;
    struct epoll_event found[512];
    while (now_ns() < ends_ns && open_connections && (!wanted || answered + errors < wanted)) {
        while (opened < all && connecting < MOST_CONNECTING) begin_connecting(&connections[opened++]);
        int waits_ms = 20;
        if (rate) {
            for (; due_ns <= now_ns() && free_connections && more(); due_ns += 1000000000u / (uint64_t)rate) {
                struct connection *c = free_connections;
                free_connections = c->next_free;
                ask(c, due_ns);
            }
            waits_ms = 0;
        }
        int events = epoll_wait(epoll_fd, found, 512, waits_ms);
        for (int i = 0; i < events; i++) happened(found[i].data.ptr, found[i].events);
    }
    report();
    return 0;
}
