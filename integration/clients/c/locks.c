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

static char used[256];

// says demands of a reply what it is as text (integers in decimal, arrays with blanks between), and frees it.
static int says(const char *what, redisReply *reply, const char *wanted) {
    char text[512] = "";
    if (reply == NULL) return 0;
    for (size_t i = 0; i < (reply->type == REDIS_REPLY_ARRAY ? reply->elements : 1); i++) {
        redisReply *r = reply->type == REDIS_REPLY_ARRAY ? reply->element[i] : reply;
        size_t end = strlen(text);
        if (r->type == REDIS_REPLY_INTEGER) {
            snprintf(text + end, sizeof text - end, "%s%lld", i ? " " : "", r->integer);
        } else {
            snprintf(text + end, sizeof text - end, "%s%s", i ? " " : "", r->str ? r->str : "nil");
        }
    }
    freeReplyObject(reply);
    if (strcmp(text, wanted) != 0) {
        snprintf(problem, sizeof problem, "%s: %.400s", what, text);
        return 0;
    }
    if (strstr(used, what) == NULL) snprintf(used + strlen(used), sizeof used - strlen(used), "%s%s", used[0] ? ", " : "", what);
    return 1;
}

// next receives the reply to a command that was appended.
static redisReply *next(redisContext *c) {
    redisReply *reply = NULL;
    if (redisGetReply(c, (void **)&reply) != REDIS_OK) snprintf(problem, sizeof problem, "%s", c->errstr);
    return reply;
}

static int hears(const char *name) {
    redisContext *listener = redisConnect(getenv("PROXY_HOST"), atoi(getenv("PROXY_PORT")));
    if (listener == NULL || listener->err) return 0;
    freeReplyObject(redisCommand(listener, "SUBSCRIBE %s:news", name));
    int heard = says("pub/sub", command("PUBLISH %s:news hello", name), "1");
    char wanted[512];
    snprintf(wanted, sizeof wanted, "message %s:news hello", name);
    heard = heard && says("pub/sub", next(listener), wanted);
    redisFree(listener);
    return heard;
}

// use_data uses everything else that one does with hiredis.
static int use_data(const char *name, const char *piped) {
    char queue[512], number[512], wanted[512];
    snprintf(queue, sizeof queue, "%s:queue z", name);
    snprintf(number, sizeof number, "%s:number", name);
    used[0] = 0;
    if (!says("strings", command("SET %s:text %b", name, "one", (size_t)3), "OK") || !says("strings", command("INCRBY %s 2", number), "2")) return 0;
    if (!says("hash", command("HSET %s:fields a 1", name), "1") || !says("hash", command("HGETALL %s:fields", name), "a 1")) return 0;
    if (!says("list", command("RPUSH %s:items x y", name), "2") || !says("list", command("LRANGE %s:items 0 -1", name), "x y")) return 0;
    if (!says("BLPOP", command("BLPOP %s:queue 1", name), "nil") || !says("BLPOP", command("RPUSH %s:queue z", name), "1") ||
        !says("BLPOP", command("BLPOP %s:queue 1", name), queue)) return 0;
    if (!says("WATCH, MULTI", command("WATCH %s", number), "OK") || !says("WATCH, MULTI", command("MULTI"), "OK") ||
        !says("WATCH, MULTI", command("INCR %s", number), "QUEUED") || !says("WATCH, MULTI", command("EXEC"), "3")) return 0;
    redisAppendCommand(context, "SET %s:text two", name);
    redisAppendCommand(context, "SET %s t NX PX 30000", piped);
    redisAppendCommand(context, "GET %s:text", name);
    redisAppendCommand(context, "DEL %s", piped);
    const char *replies[] = {"OK", "OK", "two", "1"};
    for (int i = 0; i < 4; i++) {
        if (!says("pipeline", next(context), replies[i])) return 0;
    }
    if (!hears(name)) return 0;
    redisReply *page = command("SCAN 0 MATCH %s:num* COUNT 1000", name);
    if (page == NULL || page->elements != 2 || page->element[1]->elements != 1) {
        snprintf(problem, sizeof problem, "SCAN");
        return 0;
    }
    snprintf(wanted, sizeof wanted, "%s", page->element[1]->element[0]->str);
    freeReplyObject(page);
    if (strcmp(wanted, number) != 0) {
        snprintf(problem, sizeof problem, "SCAN: %.256s", wanted);
        return 0;
    }
    strcat(used, ", SCAN");
    return says("scripts", command("EVAL %s 1 %s", "return redis.call('incrby', KEYS[1], redis.call('get', KEYS[1]))", number), "6");
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
    printf("ready %d.%d.%d extends tokens data\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "data %255s %4095s", name, word) == 2) {
            if (use_data(name, word)) {
                printf("used %s\n", used);
            } else {
                printf("error %s\n", problem);
            }
            continue;
        }
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
