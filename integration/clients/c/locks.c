// One client of hiredis, by commands; see ../go/remote.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOCKS_MAX 16
#define LINE_MAX_BYTES 4096

static const char release_script[] =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
static const char extend_script[] =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

struct lock {
    char name[256];
    unsigned char token[LINE_MAX_BYTES / 2];
    size_t token_len;
    long ttl;
};

enum answer { NO, YES, FAILED };

static redisContext *context;
static char problem[512];

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// command sends a command, on a new connection if there is none or it has failed. It returns NULL and sets problem
// on any error.
static redisReply *command(const char *format, ...) {
    if (context == NULL || context->err) {
        if (context != NULL) redisFree(context);
        context = redisConnect(getenv("PROXY_HOST"), atoi(getenv("PROXY_PORT")));
        if (context == NULL || context->err) {
            snprintf(problem, sizeof problem, "connect: %s", context ? context->errstr : "no memory");
            return NULL;
        }
    }
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(context, format, args);
    va_end(args);
    if (reply == NULL) {
        snprintf(problem, sizeof problem, "%s", context->errstr);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        snprintf(problem, sizeof problem, "%s", reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

static enum answer acquire(struct lock *l, long wait) {
    for (long end = now_ms() + wait;; usleep(50000)) {
        redisReply *reply = command("SET %s %b NX PX %ld", l->name, l->token, l->token_len, l->ttl);
        if (reply == NULL) return FAILED;
        int granted = reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
        freeReplyObject(reply);
        if (granted) break;
        if (now_ms() >= end) return NO;
    }
    redisReply *reply = command("GET %s", l->name);
    if (reply == NULL) return FAILED;
    int same = reply->type == REDIS_REPLY_STRING && reply->len == l->token_len && memcmp(reply->str, l->token, l->token_len) == 0;
    freeReplyObject(reply);
    if (!same) snprintf(problem, sizeof problem, "GET tells another token");
    return same ? YES : FAILED;
}

static enum answer is_one(redisReply *reply) {
    if (reply == NULL) return FAILED;
    enum answer a = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1 ? YES : NO;
    freeReplyObject(reply);
    return a;
}

static void decode(struct lock *l, const char *word) {
    if (word[0] == '-') { // one of our own
        l->token_len = (size_t)snprintf((char *)l->token, sizeof l->token, "%d-%ld", getpid(), random());
        return;
    }
    l->token_len = strlen(word + 1) / 2;
    for (size_t i = 0; i < l->token_len; i++) {
        unsigned byte;
        sscanf(word + 1 + 2 * i, "%2x", &byte);
        l->token[i] = (unsigned char)byte;
    }
}

int main(void) {
    static struct lock locks[LOCKS_MAX];
    char line[LINE_MAX_BYTES], verb[16], name[256], word[LINE_MAX_BYTES];
    int id;
    long number;
    srandom((unsigned)(now_ms() ^ getpid()));
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %d.%d.%d extends tokens\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%15s %d", verb, &id) != 2 || id < 0 || id >= LOCKS_MAX) return 1;
        struct lock *l = &locks[id];
        enum answer a = YES;
        if (strcmp(verb, "lock") == 0 && sscanf(line, "%*s %*d %255s %ld %4095s", name, &number, word) == 3) {
            strcpy(l->name, name);
            l->ttl = number;
            decode(l, word);
        } else if (strcmp(verb, "acquire") == 0 && sscanf(line, "%*s %*d %ld", &number) == 1) {
            a = acquire(l, number);
        } else if (strcmp(verb, "release") == 0) {
            a = is_one(command("EVAL %s 1 %s %b", release_script, l->name, l->token, l->token_len));
        } else if (strcmp(verb, "extend") == 0 && sscanf(line, "%*s %*d %ld", &number) == 1) {
            a = is_one(command("EVAL %s 1 %s %b %ld", extend_script, l->name, l->token, l->token_len, number));
        } else {
            return 1;
        }
        if (a == FAILED) {
            printf("error %s\n", problem);
        } else {
            puts(a == YES ? "yes" : "no");
        }
    }
    return 0;
}
