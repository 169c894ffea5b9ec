/*-------------------------------------------------------------------------
 *
 * soak.c
 *	  Many sessions that sort for a long time; soak.sh builds and runs it.
 *
 *		soak expect FILE
 *		soak run FILE NAME CLIENTS LARGE SECONDS THINK_MS KILL_MS SEED
 *
 * "expect" runs every query once by PostgreSQL alone and writes a hash of each
 * result, over all rows in their order.  "run" has CLIENTS threads with a session
 * each do what sessions do, at random, and compares each result with that hash.
 * LARGE of them do large sorts only.  Between two statements a client thinks for
 * 2 * THINK_MS at most.  Every KILL_MS some session is cancelled or terminated; 0: none is.
 * It prints a line of latencies for small sorts and one for large ones.
 *
 * What a client does: queries, some prepared, LIMITs, cursors that stay open, forward
 * and back, index builds with amcheck, arrays; it cancels its own statements, and leaves and
 * comes back.  Only errors of who was cancelled or terminated are allowed.
 *
 * The exit status is 0 if no result was wrong and no other error came.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libpq-fe.h"

#define N_GROUPS	20			/* of table s: $1 is one of them */
#define N_TABLES	8			/* x0, x1, ...: for index builds */
#define FIRST_ROWS	100			/* that a cursor fetches before it waits */
#define MAX_COMPLAINTS	20

#define lengthof(array) (sizeof(array) / sizeof((array)[0]))

typedef enum Kind
{
	SMALL,						/* one sort of 1,000 to 20,000 rows of a group of s */
	SMALL_OTHER,				/* the same, in another shape */
	LARGE						/* of all rows of l; has no parameter */
} Kind;

typedef struct Query
{
	Kind		kind;
	const char *sql;
} Query;

static const Query queries[] = {
	{SMALL, "SELECT id, i FROM s WHERE g = $1 ORDER BY i, id"},
	{SMALL, "SELECT id, f FROM s WHERE g = $1 ORDER BY f DESC, id"},
	{SMALL, "SELECT id, n FROM s WHERE g = $1 ORDER BY n, id"},
	{SMALL, "SELECT id, t FROM s WHERE g = $1 ORDER BY t COLLATE \"C\", id"},
	{SMALL, "SELECT id, t FROM s WHERE g = $1 ORDER BY t COLLATE \"en-x-icu\", id"},
	{SMALL, "SELECT id, t FROM s WHERE g = $1 ORDER BY t COLLATE \"en_US.utf8\", id"},
	{SMALL, "SELECT id, n, t FROM s WHERE g = $1 ORDER BY n DESC NULLS LAST, t COLLATE \"en-x-icu\", id DESC"},
	{SMALL_OTHER, "SELECT id, t FROM s WHERE g = $1 ORDER BY t COLLATE \"C\", id LIMIT 50 OFFSET 7"},
	{SMALL_OTHER, "SELECT DISTINCT i % 100, n FROM s WHERE g = $1 ORDER BY 1, 2"},
	{SMALL_OTHER, "SELECT id, rank() OVER (PARTITION BY i % 10 ORDER BY t COLLATE \"C\", id) AS r FROM s WHERE g = $1 ORDER BY i % 10, r, id"},
	{SMALL_OTHER, "SELECT i % 7, count(DISTINCT t COLLATE \"C\"), percentile_disc(0.3) WITHIN GROUP (ORDER BY f) FROM s WHERE g = $1 GROUP BY 1 ORDER BY 1"},
	{SMALL_OTHER, "SELECT id, gpu_sort_array(a) FROM (SELECT id, a FROM s WHERE g = $1 ORDER BY id OFFSET 0) AS q"},
	{SMALL_OTHER, "SELECT a.id, b.id FROM (SELECT * FROM s WHERE g = $1 ORDER BY i, id OFFSET 0) AS a JOIN "
		"(SELECT * FROM s WHERE g = $1 ORDER BY i, id OFFSET 0) AS b USING (i) ORDER BY a.i, a.id, b.id"},
	{LARGE, "SELECT chain(id) FROM (SELECT id, p FROM l ORDER BY i, id OFFSET 0) AS q"},
	{LARGE, "SELECT chain(id + length(p)) FROM (SELECT id, p FROM l ORDER BY f DESC, id OFFSET 0) AS q"},
	{LARGE, "SELECT chain(id) FROM (SELECT id FROM l ORDER BY n, id OFFSET 0) AS q"},
	{LARGE, "SELECT chain(id + length(p)) FROM (SELECT id, p FROM l ORDER BY t COLLATE \"C\", id OFFSET 0) AS q"},
	{LARGE, "SELECT chain(id) FROM (SELECT id FROM l ORDER BY t COLLATE \"en-x-icu\", id OFFSET 0) AS q"},
	{LARGE, "SELECT chain(id) FROM (SELECT id FROM l ORDER BY t COLLATE \"en_US.utf8\", id OFFSET 0) AS q"},
	{LARGE, "SELECT id, p FROM l ORDER BY n DESC, t COLLATE \"C\", id LIMIT 20000"},
};

#define N_QUERIES	((int) lengthof(queries))

/* Columns of x0, x1, ... to be indexed */
static const char *const index_columns[] = {
	"i", "f DESC, id", "n", "t COLLATE \"C\"", "t COLLATE \"en-x-icu\", i", "t COLLATE \"en_US.utf8\""
};

typedef struct Latencies
{
	double	   *ms;
	int			n;
	int			max;
} Latencies;

typedef struct Client
{
	pthread_t	thread;
	int			number;
	bool		large;
	uint64_t	random;
	PGconn	   *conn;
	bool		prepared[N_QUERIES];
	int			pid;			/* atomic; 0: not connected */
	int			killed;			/* atomic: how often it was cancelled or terminated and has not noticed */
	Latencies	small_ms;
	Latencies	large_ms;
	long		n_done;
	long		n_ended;		/* statements that were cancelled or terminated */
} Client;

static uint64_t expected[N_QUERIES][N_GROUPS];
static uint64_t expected_first[N_QUERIES][N_GROUPS];	/* of the first FIRST_ROWS rows */
static double end_time;
static int	think_ms;
static int	kill_ms;
static int	n_complaints = 0;	/* atomic */

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static uint32_t
below(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) ((*state >> 33) % n);
}

static void
sleep_ms(int ms)
{
	if (ms > 0)
		usleep((useconds_t) ms * 1000);
}

__attribute__((format(printf, 1, 2)))
static void
complain(const char *format, ...)
{
	va_list		args;

	if (__atomic_fetch_add(&n_complaints, 1, __ATOMIC_RELAXED) >= MAX_COMPLAINTS)
		return;
	va_start(args, format);
	flockfile(stdout);
	printf("WRONG: ");
	vprintf(format, args);
	printf("\n");
	funlockfile(stdout);
	va_end(args);
}

/* FNV-1a, with a byte that no text has behind each value */
static uint64_t
hash_value(uint64_t hash, const char *value)
{
	for (; *value; value++)
		hash = (hash ^ (unsigned char) *value) * UINT64_C(1099511628211);
	return (hash ^ 0xff) * UINT64_C(1099511628211);
}

#define HASH_START	UINT64_C(14695981039346656037)

static uint64_t
hash_rows(uint64_t hash, const PGresult *result, int first, int last)
{
	for (int row = first; row < last; row++)
		for (int column = 0; column < PQnfields(result); column++)
			hash = hash_value(hash, PQgetisnull(result, row, column) ? "\x01" : PQgetvalue(result, row, column));
	return hash;
}

static int
n_groups(int query)
{
	return queries[query].kind == LARGE ? 1 : N_GROUPS;
}

/* An idle session that is terminated says so */
static void
ignore_notice(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/* Has somebody cancelled or terminated the session?  Takes note of one time. */
static bool
was_killed(Client *c)
{
	int			killed = __atomic_load_n(&c->killed, __ATOMIC_RELAXED);

	while (killed > 0 && !__atomic_compare_exchange_n(&c->killed, &killed, killed - 1, false,
													  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return killed > 0;
}

/* 100 ms each */
#define CONNECT_ATTEMPTS	300

static void
connect_client(Client *c)
{
	static const char *const settings[] = {
		"SET gpusort.force = on; SET gpusort.min_rows = 0",
		"SET gpusort.force = on; SET gpusort.min_rows = 500; SET max_parallel_workers_per_gather = 2",
		"SET gpusort.force = on; SET gpusort.min_rows = 0; SET enable_hashjoin = off; SET cursor_tuple_fraction = 1",
		"SET gpusort.force = on; SET gpusort.min_rows = 0; SET gpusort.role_memory = '64MB'"
	};

	for (int attempt = 0;; attempt++)
	{
		PGresult   *result;

		c->conn = PQconnectdb("");
		memset(c->prepared, 0, sizeof(c->prepared));
		if (PQstatus(c->conn) == CONNECTION_OK)
		{
			PQsetNoticeProcessor(c->conn, ignore_notice, NULL);
			/* what was aimed at the session before cannot reach this one */
			__atomic_store_n(&c->killed, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&c->pid, PQbackendPID(c->conn), __ATOMIC_RELAXED);
			result = PQexec(c->conn, settings[below(&c->random, lengthof(settings))]);
			if (PQresultStatus(result) == PGRES_COMMAND_OK)
			{
				PQclear(result);
				return;
			}
			PQclear(result);
		}
		else if (!was_killed(c))
			complain("client %d cannot connect: %s", c->number, PQerrorMessage(c->conn));
		PQfinish(c->conn);
		if (attempt == CONNECT_ATTEMPTS)
		{
			printf("WRONG: the server is gone\n");
			exit(1);
		}
		sleep_ms(100);
	}
}

static void
disconnect_client(Client *c)
{
	__atomic_store_n(&c->pid, 0, __ATOMIC_RELAXED);
	PQfinish(c->conn);
	c->conn = NULL;
}

/*
 * Is it a result to look at?  Else it is freed; the session is usable again then, and in no
 * transaction.
 */
static bool
succeeded(Client *c, PGresult *result, const char *sql)
{
	ExecStatusType status = PQresultStatus(result);
	const char *state;
	bool		killed;

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return true;
	state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	killed = was_killed(c);
	c->n_ended++;
	if (!killed || (state != NULL && strcmp(state, "57014") != 0 && strcmp(state, "57P01") != 0))
		complain("client %d: %s: %s", c->number, sql, PQresultErrorMessage(result));
	PQclear(result);
	if (PQstatus(c->conn) != CONNECTION_OK)
	{
		disconnect_client(c);
		connect_client(c);
	}
	else if (PQtransactionStatus(c->conn) != PQTRANS_IDLE)
		PQclear(PQexec(c->conn, "ROLLBACK"));
	return false;
}

static bool
command(Client *c, const char *sql)
{
	PGresult   *result = PQexec(c->conn, sql);

	if (!succeeded(c, result, sql))
		return false;
	PQclear(result);
	return true;
}

static void
note_latency(Latencies *l, double ms)
{
	if (l->n == l->max)
	{
		l->max = l->max == 0 ? 1024 : l->max * 2;
		l->ms = realloc(l->ms, l->max * sizeof(double));
		if (l->ms == NULL)
			abort();
	}
	l->ms[l->n++] = ms;
}

static void
check_rows(Client *c, int query, int group, uint64_t hash, uint64_t wanted, const char *how)
{
	c->n_done++;
	if (hash != wanted)
		complain("client %d, %s, group %d: other rows: %s", c->number, how, group, queries[query].sql);
}

/* Run a query, prepared or not */
static void
run_query(Client *c, int query, bool prepared)
{
	const char *sql = queries[query].sql;
	bool		has_group = queries[query].kind != LARGE;
	int			group = below(&c->random, n_groups(query));
	char		number[16];
	char		name[16];
	const char *values[1] = {number};
	double		start;
	PGresult   *result;

	snprintf(number, sizeof(number), "%d", group);
	snprintf(name, sizeof(name), "q%d", query);
	if (prepared && !c->prepared[query])
	{
		result = PQprepare(c->conn, name, sql, 0, NULL);
		if (!succeeded(c, result, sql))
			return;
		PQclear(result);
		c->prepared[query] = true;
	}
	start = now();
	if (prepared)
		result = PQexecPrepared(c->conn, name, has_group, values, NULL, NULL, 0);
	else
		result = PQexecParams(c->conn, sql, has_group, NULL, values, NULL, NULL, 0);
	if (!succeeded(c, result, sql))
		return;
	if (queries[query].kind != SMALL_OTHER)
		note_latency(has_group ? &c->small_ms : &c->large_ms, (now() - start) * 1000);
	check_rows(c, query, group, hash_rows(HASH_START, result, 0, PQntuples(result)), expected[query][group],
			   prepared ? "prepared" : "query");
	PQclear(result);
}

/* The query's text with the parameter put in */
static void
with_group(char *sql, size_t bytes, const char *before, int query, int group)
{
	const char *from = queries[query].sql;
	size_t		used = (size_t) snprintf(sql, bytes, "%s", before);

	while (*from && used + 16 < bytes)
		if (strncmp(from, "$1", 2) == 0)
		{
			used += (size_t) snprintf(sql + used, bytes - used, "%d", group);
			from += 2;
		}
		else
			sql[used++] = *from++;
	sql[used] = '\0';
}

/* A cursor that stays open for a while; read to its end, or left */
static void
run_cursor(Client *c, int query)
{
	int			group = below(&c->random, n_groups(query));
	bool		scroll = below(&c->random, 2) == 0;
	uint64_t	hash;
	char		sql[1024];
	PGresult   *result;

	with_group(sql, sizeof(sql), scroll ? "DECLARE c SCROLL CURSOR FOR " : "DECLARE c CURSOR FOR ", query, group);
	if (!command(c, "BEGIN") || !command(c, sql))
		return;
	for (int again = scroll; again >= 0; again--)
	{
		result = PQexec(c->conn, "FETCH 100 FROM c");
		if (!succeeded(c, result, sql))
			return;
		hash = hash_rows(HASH_START, result, 0, PQntuples(result));
		PQclear(result);
		check_rows(c, query, group, hash, expected_first[query][group], "cursor");
		sleep_ms(below(&c->random, 2 * think_ms + 1));
		if (again && !command(c, "MOVE ABSOLUTE 0 IN c"))
			return;
	}
	if (below(&c->random, 3) > 0)
	{
		result = PQexec(c->conn, "FETCH ALL FROM c");
		if (!succeeded(c, result, sql))
			return;
		hash = hash_rows(hash, result, 0, PQntuples(result));
		PQclear(result);
		check_rows(c, query, group, hash, expected[query][group], "cursor");
	}
	command(c, below(&c->random, 2) ? "COMMIT" : "ROLLBACK");
}

/* Build an index, have amcheck look at it, and drop it */
static void
run_index(Client *c)
{
	char		sql[512];

	snprintf(sql, sizeof(sql), "CREATE INDEX soak_%d ON x%d (%s)", c->number, below(&c->random, N_TABLES),
			 index_columns[below(&c->random, lengthof(index_columns))]);
	if (!command(c, "BEGIN") || !command(c, sql))
		return;
	snprintf(sql, sizeof(sql), "SELECT bt_index_parent_check('soak_%d', true, true)", c->number);
	if (!command(c, sql))
		return;
	c->n_done++;
	command(c, "ROLLBACK");
}

/* Cancel one's own query after a while */
static void
run_cancelled(Client *c, int query)
{
	int			group = below(&c->random, n_groups(query));
	PGcancel   *cancel;
	char		sql[1024];
	char		error[256];
	PGresult   *result;
	PGresult   *more;

	with_group(sql, sizeof(sql), "", query, group);
	cancel = PQgetCancel(c->conn);
	if (cancel && PQsendQuery(c->conn, sql) == 1)
	{
		sleep_ms(below(&c->random, queries[query].kind == LARGE ? 1000 : 30));
		__atomic_fetch_add(&c->killed, 1, __ATOMIC_RELAXED);
		(void) PQcancel(cancel, error, sizeof(error));
	}
	PQfreeCancel(cancel);
	result = PQgetResult(c->conn);
	while ((more = PQgetResult(c->conn)) != NULL)
		PQclear(more);
	if (!succeeded(c, result, sql))
		return;
	if (PQntuples(result) > 0)
		check_rows(c, query, group, hash_rows(HASH_START, result, 0, PQntuples(result)),
				   expected[query][group], "cancelled too late");
	PQclear(result);

	/* the cancel may arrive only now */
	(void) command(c, "SELECT pg_sleep(0.01)");
}

static int
choose_query(Client *c, bool other)
{
	for (;;)
	{
		int			query = below(&c->random, N_QUERIES);

		if ((queries[query].kind == LARGE) == c->large && (queries[query].kind != SMALL_OTHER || other))
			return query;
	}
}

static void *
run_client(void *arg)
{
	Client	   *c = arg;

	connect_client(c);
	while (now() < end_time)
	{
		uint32_t	dice = below(&c->random, 100);

		/* without who is killed: small sorts alone */
		if (kill_ms == 0 || dice < 60)
			run_query(c, choose_query(c, false), dice % 4 == 0);
		else if (dice < 75)
			run_query(c, choose_query(c, true), dice % 2 == 0);
		else if (dice < 85)
			run_cursor(c, choose_query(c, true));
		else if (dice < 90)
			run_cancelled(c, choose_query(c, true));
		else if (dice < 95)
			run_index(c);
		else
		{
			disconnect_client(c);
			connect_client(c);
		}
		sleep_ms(below(&c->random, 2 * think_ms + 1));
	}
	disconnect_client(c);
	return NULL;
}

/* Cancel or terminate somebody now and then */
static void
kill_clients(Client *clients, int n, uint64_t seed)
{
	PGconn	   *conn = PQconnectdb("");
	uint64_t	random = seed;

	while (now() < end_time)
	{
		Client	   *victim = &clients[below(&random, n)];
		int			pid;
		char		sql[128];
		PGresult   *result;

		sleep_ms(kill_ms);
		pid = __atomic_load_n(&victim->pid, __ATOMIC_RELAXED);
		if (pid == 0)
			continue;
		__atomic_fetch_add(&victim->killed, 1, __ATOMIC_RELAXED);
		snprintf(sql, sizeof(sql),
				 "SELECT pg_%s_backend(pid) FROM pg_stat_activity WHERE pid = %d AND backend_type = 'client backend'",
				 below(&random, 4) == 0 ? "terminate" : "cancel", pid);
		result = PQexec(conn, sql);
		if (PQresultStatus(result) != PGRES_TUPLES_OK)
			complain("cannot cancel or terminate: %s", PQerrorMessage(conn));
		PQclear(result);
	}
	PQfinish(conn);
}

static int
compare_ms(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static void
print_latencies(const char *phase, const char *what, const Client *clients, int n_clients, bool large)
{
	Latencies	all = {0};

	for (int i = 0; i < n_clients; i++)
	{
		const Latencies *l = large ? &clients[i].large_ms : &clients[i].small_ms;

		for (int j = 0; j < l->n; j++)
			note_latency(&all, l->ms[j]);
	}
	if (all.n == 0)
		return;
	qsort(all.ms, all.n, sizeof(double), compare_ms);
	printf("%-12s %-6s %8d %10.1f %10.1f %10.1f\n", phase, what, all.n, all.ms[all.n / 2],
		   all.ms[(int) (all.n * 0.99)], all.ms[all.n - 1]);
	free(all.ms);
}

static int
run(const char *phase, int n, int n_large, uint64_t seed)
{
	Client	   *clients = calloc(n, sizeof(Client));
	long		done = 0;
	long		ended = 0;

	for (int i = 0; i < n; i++)
	{
		clients[i].number = i;
		clients[i].large = i < n_large;
		clients[i].random = seed * 1000003 + i;
		if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0)
			abort();
	}
	if (kill_ms > 0)
		kill_clients(clients, n, seed);
	for (int i = 0; i < n; i++)
	{
		pthread_join(clients[i].thread, NULL);
		done += clients[i].n_done;
		ended += clients[i].n_ended;
	}
	print_latencies(phase, "small", clients, n, false);
	print_latencies(phase, "large", clients, n, true);
	printf("%-12s %ld results compared, %ld statements cancelled or terminated, %d wrong\n", phase, done, ended,
		   n_complaints);
	return n_complaints == 0 ? 0 : 1;
}

static int
write_expected(const char *path)
{
	PGconn	   *conn = PQconnectdb("");
	FILE	   *file = fopen(path, "w");
	PGresult   *set = PQexec(conn, "SET gpusort.enabled = off");

	if (PQresultStatus(set) != PGRES_COMMAND_OK)
	{
		fprintf(stderr, "soak: %s", PQresultErrorMessage(set));
		return 1;
	}
	PQclear(set);
	for (int query = 0; query < N_QUERIES; query++)
		for (int group = 0; group < n_groups(query); group++)
		{
			char		sql[1024];
			PGresult   *result;
			int			n;

			with_group(sql, sizeof(sql), "", query, group);
			result = PQexec(conn, sql);
			if (file == NULL || PQresultStatus(result) != PGRES_TUPLES_OK)
			{
				fprintf(stderr, "soak: %s: %s", sql, PQresultErrorMessage(result));
				return 1;
			}
			n = PQntuples(result);
			fprintf(file, "%llu %llu\n", (unsigned long long) hash_rows(HASH_START, result, 0, n),
					(unsigned long long) hash_rows(HASH_START, result, 0, n < FIRST_ROWS ? n : FIRST_ROWS));
			PQclear(result);
		}
	PQfinish(conn);
	return fclose(file) == 0 ? 0 : 1;
}

static bool
read_expected(const char *path)
{
	FILE	   *file = fopen(path, "r");

	for (int query = 0; query < N_QUERIES; query++)
		for (int group = 0; group < n_groups(query); group++)
		{
			unsigned long long all;
			unsigned long long first;

			if (file == NULL || fscanf(file, "%llu %llu", &all, &first) != 2)
				return false;
			expected[query][group] = all;
			expected_first[query][group] = first;
		}
	fclose(file);
	return true;
}

int
main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && strcmp(argv[1], "expect") == 0)
		return write_expected(argv[2]);
	if (argc != 10 || strcmp(argv[1], "run") != 0 || !read_expected(argv[2]))
	{
		fprintf(stderr, "soak: expect FILE, or run FILE NAME CLIENTS LARGE SECONDS THINK_MS KILL_MS SEED\n");
		return 2;
	}
	end_time = now() + atof(argv[6]);
	think_ms = atoi(argv[7]);
	kill_ms = atoi(argv[8]);
	return run(argv[3], atoi(argv[4]), atoi(argv[5]), strtoull(argv[9], NULL, 10));
}
