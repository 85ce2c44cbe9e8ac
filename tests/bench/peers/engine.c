/* An engine that takes no time, on as many ports as are asked for: `engine PORTS PACE_MS CHUNKS`.
 *
 * Prints its ports. A POST with `"stream":true` is answered with CHUNKS events, one every PACE_MS;
 * any other at once. One process, one thread; it ends with its standard input.
 */
#define _GNU_SOURCE
#include "http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_PORTS = 64, READ_BYTES = 262144, SEEN_BYTES = 64 };

struct connection {
    int fd, listener;
    char head[8192];
    size_t head_size;
    int in_body, is_post, streams, keep;
    struct body body;
    char seen[SEEN_BYTES]; /* the end of the body so far: what is looked for may lie across reads */
    size_t seen_size;
    int sent_chunks;
    uint64_t due_ns;
    int place; /* among the streaming ones, -1 where it doesn't stream */
};

static int epoll_fd, chunk_count;
static uint64_t pace_ns;
static struct connection **streaming;
static int streaming_count, streaming_room;
static char reading[READ_BYTES];

static const char JSON_ANSWER[] =
    "{\"id\":\"cmpl-1\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,"
    "\"message\":{\"role\":\"assistant\",\"content\":\"The quick brown fox jumps over the lazy dog, and the dog, being "
    "lazy, lets it.\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":24,"
    "\"total_tokens\":64}}";
static const char EVENT[] =
    "data: {\"id\":\"cmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":"
    "[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
static const char LAST_EVENTS[] =
    "data: {\"id\":\"cmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[],"
    "\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":64,\"total_tokens\":104}}\n\ndata: [DONE]\n\n";
static const char PAGE[] =
    "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\",\"created\":1,\"owned_by\":\"mock\"}],"
    "\"model_path\":\"m\",\"served_model_name\":\"m\",\"is_generation\":true,\"status\":\"ok\"}";
static const char STREAM_HEAD[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

static void drop(struct connection *c);

static void leave_streaming(struct connection *c) {
    if (c->place < 0) return;
    struct connection *last = streaming[--streaming_count];
    streaming[c->place] = last;
    last->place = c->place;
    c->place = -1;
}

static void drop(struct connection *c) {
    leave_streaming(c);
    close(c->fd);
    free(c);
}

/* What doesn't fit into the socket's buffer is lost with the connection: readers here are fast. */
static int put(struct connection *c, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(c->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) return 0;
        data += sent;
        size -= (size_t)sent;
    }
    return 1;
}

static int put_json(struct connection *c, const char *json, size_t size) {
    char out[2048];
    int length = snprintf(out, sizeof out,
                          "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%.*s", size,
                          (int)size, json);
    return put(c, out, (size_t)length);
}

static void join_streaming(struct connection *c) {
    if (streaming_count == streaming_room) {
        streaming_room = streaming_room ? 2 * streaming_room : 256;
        streaming = realloc(streaming, (size_t)streaming_room * sizeof *streaming);
        if (!streaming) exit(3);
    }
    c->place = streaming_count;
    streaming[streaming_count++] = c;
    c->sent_chunks = 0;
    c->due_ns = now_ns() + pace_ns;
}

/* 0 where the connection is of no use any more. */
static int answer(struct connection *c) {
    c->in_body = 0;
    if (!c->is_post) return put_json(c, PAGE, sizeof PAGE - 1);
    if (!c->streams) return put_json(c, JSON_ANSWER, sizeof JSON_ANSWER - 1);
    join_streaming(c);
    return put(c, STREAM_HEAD, sizeof STREAM_HEAD - 1);
}

static int put_event(struct connection *c, const char *event, size_t size, int last) {
    char out[1024];
    int length = snprintf(out, sizeof out, "%zx\r\n%.*s\r\n%s", size, (int)size, event, last ? "0\r\n\r\n" : "");
    return put(c, out, (size_t)length);
}

static void stream(void) {
    uint64_t now = now_ns();
    for (int i = streaming_count - 1; i >= 0; i--) {
        struct connection *c = streaming[i];
        if (c->due_ns > now) continue;
        int last = c->sent_chunks == chunk_count;
        int fine = last ? put_event(c, LAST_EVENTS, sizeof LAST_EVENTS - 1, 1) : put_event(c, EVENT, sizeof EVENT - 1, 0);
        c->sent_chunks++;
        c->due_ns += pace_ns;
        if (last) leave_streaming(c);
        if (!fine) drop(c);
    }
}

static void look_for_stream(struct connection *c, const char *data, size_t size) {
    char joint[2 * SEEN_BYTES];
    size_t part = size < SEEN_BYTES ? size : SEEN_BYTES;
    memcpy(joint, c->seen, c->seen_size);
    memcpy(joint + c->seen_size, data, part);
    const char *places[] = {joint, data};
    size_t sizes[] = {c->seen_size + part, size};
    for (int i = 0; i < 2; i++)
        if (memmem(places[i], sizes[i], "\"stream\":true", 13) || memmem(places[i], sizes[i], "\"stream\": true", 14))
            c->streams = 1;
    part = size < SEEN_BYTES ? size : SEEN_BYTES;
    memcpy(c->seen, data + size - part, part);
    c->seen_size = part;
}

/* 0 where the connection is of no use any more. */
static int take(struct connection *c, char *data, size_t size) {
    while (size) {
        if (!c->in_body) {
            size_t part = sizeof c->head - c->head_size < size ? sizeof c->head - c->head_size : size;
            memcpy(c->head + c->head_size, data, part);
            char *end = head_end(c->head, c->head_size + part);
            if (!end) {
                c->head_size += part;
                return c->head_size < sizeof c->head;
            }
            size_t taken = (size_t)(end - c->head) - c->head_size;
            data += taken;
            size -= taken;
            c->is_post = !memcmp(c->head, "POST", 4);
            c->body = body_of(c->head, end, BY_LENGTH);
            c->body.done = c->body.framing == BY_LENGTH && !c->body.left;
            c->head_size = 0;
            c->in_body = 1;
            c->streams = 0;
            c->seen_size = 0;
            if (header(c->head, end, "expect:") && !put(c, "HTTP/1.1 100 Continue\r\n\r\n", 25)) return 0;
        }
        size_t taken = read_body(&c->body, data, size);
        if (taken) look_for_stream(c, data, taken);
        data += taken;
        size -= taken;
        if (c->body.done && !answer(c)) return 0;
    }
    return 1;
}

static void receive(struct connection *c) {
    for (;;) {
        ssize_t size = recv(c->fd, reading, sizeof reading, 0);
        if (size < 0 && errno == EAGAIN) return;
        if (size <= 0 || !take(c, reading, (size_t)size)) {
            drop(c);
            return;
        }
        if ((size_t)size < sizeof reading) return;
    }
}

static void watch(int fd, struct connection *c) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) exit(4);
}

static void take_clients(struct connection *listener) {
    int fd;
    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct connection *c = calloc(1, sizeof *c);
        if (!c) exit(3);
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->fd = fd;
        c->place = -1;
        watch(fd, c);
    }
}

static void listen_on(struct connection *listener) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    listener->listener = 1;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener->fd, (struct sockaddr *)&address, size) || listen(listener->fd, 16384)) exit(4);
    getsockname(listener->fd, (struct sockaddr *)&address, &size);
    printf("%d ", ntohs(address.sin_port));
    watch(listener->fd, listener);
}

int main(int count, char **words) {
    static struct connection listeners[MOST_PORTS], input;
    int ports = count == 4 ? atoi(words[1]) : 0;
    if (ports < 1 || ports > MOST_PORTS || atoi(words[2]) < 1 || atoi(words[3]) < 1) {
        fprintf(stderr, "usage: engine PORTS(1..%d) PACE_MS CHUNKS\n", MOST_PORTS);
        return 2;
    }
    pace_ns = (uint64_t)atoi(words[2]) * 1000000u;
    chunk_count = atoi(words[3]);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    epoll_fd = epoll_create1(0);
    for (int i = 0; i < ports; i++) listen_on(&listeners[i]);
    puts("");
    fflush(stdout);
    input.fd = 0;
    watch(0, &input);
    struct epoll_event events[512];
    for (;;) {
        int found = epoll_wait(epoll_fd, events, 512, streaming_count ? 1 : -1);
        for (int i = 0; i < found; i++) {
            struct connection *c = events[i].data.ptr;
            if (c == &input) return 0;
            if (c->listener) take_clients(c);
            else receive(c);
        }
        if (streaming_count) stream();
    }
}
