/* What both programs of this folder need of HTTP/1.1: where a message ends. */
#ifndef PEERS_HTTP_H
#define PEERS_HTTP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum framing { BY_LENGTH, BY_CHUNKS, BY_CLOSE };

/* How far a body has come. */
struct body {
    enum framing framing;
    size_t left; /* bytes of the body, or of the chunk that is being read */
    int phase;   /* of a chunk: 0 size line, 1 data, 2 line end behind it, 3 trailer */
    int line;    /* bytes in the trailer line so far */
    int done;
};

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The end of the head behind its empty line, or NULL. */
static inline char *head_end(char *data, size_t size) {
    char *found = memmem(data, size, "\r\n\r\n", 4);
    return found ? found + 4 : NULL;
}

/* The value of a header of a head, or NULL; `name` has its colon. */
static inline char *header(char *head, char *end, const char *name) {
    size_t length = strlen(name);
    for (char *at = head; at < end;) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) return NULL;
        if ((size_t)(line_end - at) > length && !strncasecmp(at, name, length)) {
            at += length;
            while (*at == ' ') at++;
            return at;
        }
        at = line_end + 1;
    }
    return NULL;
}

static inline struct body body_of(char *head, char *end, enum framing otherwise) {
    struct body body = {otherwise, 0, 0, 0, 0};
    char *value = header(head, end, "content-length:");
    if (value) {
        body.framing = BY_LENGTH;
        body.left = strtoul(value, NULL, 10);
    } else if ((value = header(head, end, "transfer-encoding:")) && !strncasecmp(value, "chunked", 7)) {
        body.framing = BY_CHUNKS;
    }
    body.done = body.framing == BY_LENGTH && !body.left;
    return body;
}

static inline size_t read_chunked(struct body *body, const char *data, size_t size) {
    size_t at = 0;
    while (at < size && !body->done) {
        char c = data[at];
        if (body->phase == 1) {
            size_t part = size - at < body->left ? size - at : body->left;
            body->left -= part;
            at += part;
            if (!body->left) body->phase = 2;
            continue;
        }
        at++;
        if (body->phase == 0) {
            if (c >= '0' && c <= '9') body->left = body->left * 16 + (size_t)(c - '0');
            else if ((c | 32) >= 'a' && (c | 32) <= 'f') body->left = body->left * 16 + (size_t)((c | 32) - 'a' + 10);
            else if (c == '\n') body->phase = body->left ? 1 : 3;
        } else if (body->phase == 2) {
            if (c == '\n') body->phase = 0;
        } else if (c == '\n') {
            if (!body->line) body->done = 1;
            body->line = 0;
        } else if (c != '\r') {
            body->line++;
        }
    }
    return at;
}

/* Take what belongs to the body; gives how much that is. */
static inline size_t read_body(struct body *body, const char *data, size_t size) {
    if (body->done) return 0;
    if (body->framing == BY_CHUNKS) return read_chunked(body, data, size);
    if (body->framing == BY_CLOSE) return size;
    size_t part = size < body->left ? size : body->left;
    body->left -= part;
    body->done = !body->left;
    return part;
}

#endif
