/*-------------------------------------------------------------------------
 *
 * func_collation_check.c
 *	  The SQL function gpusort_collation_check(): which indexes depend on a
 *	  collation that has another version than recorded, and which of them are
 *	  in a wrong order?
 *
 * An index depends on the collations of its key columns, and on those within
 * their types, if these are jsonb, composite types, ranges, or arrays or domains of them.
 * Operator classes that compare bytes, or store no text, do not depend on any.
 *
 * Tests: tap/index_collation_change, tap/index_collation_repair
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/tuplestore.h"

#include "func/collation.h"

PG_FUNCTION_INFO_V1(gpusort_collation_check);

const char	gs_collation_indexes[] = GS_COLLATION_VERSIONS
	", part (index, am, type, coll) AS ("
	"	SELECT i.indexrelid, c.relam, a.atttypid, a.attcollation"
	"	FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
	"	JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts"
	"	JOIN pg_opclass AS o ON o.oid = i.indclass[a.attnum - 1]"
	"	WHERE c.relkind = 'i' AND c.relpersistence <> 't' AND i.indislive"
	"		AND o.opcname !~ '(pattern|trgm|bloom)_ops$'"
	"	UNION"
	"	SELECT p.index, p.am, inner_part.type, inner_part.coll"
	"	FROM part AS p JOIN pg_type AS t ON t.oid = p.type, LATERAL ("
	"		SELECT a.atttypid, a.attcollation FROM pg_attribute AS a"
	"			WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped"
	"		UNION ALL"
	"		SELECT r.rngsubtype, r.rngcollation FROM pg_range AS r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)"
	"		UNION ALL"
	/* jsonb compares strings under the database's collation */
	"		SELECT 0::oid, 100::oid WHERE t.oid = 'jsonb'::regtype"
	"		UNION ALL"
	"		SELECT t.typelem, 0::oid WHERE t.typcategory = 'A'"
	"		UNION ALL"
	"		SELECT t.typbasetype, 0::oid WHERE t.typtype = 'd') AS inner_part (type, coll)),"
	"affected AS ("
	"	SELECT p.index, array_agg(d.oid::regcollation ORDER BY d.oid) AS collations,"
	"		array_agg(d.recorded ORDER BY d.oid) AS recorded, array_agg(d.actual ORDER BY d.oid) AS actual"
	"	FROM (SELECT DISTINCT index, am, coll FROM part) AS p JOIN differing AS d ON d.oid = p.coll"
	/* hashes are of the bytes, except under nondeterministic collations */
	"	WHERE p.am <> (SELECT oid FROM pg_am WHERE amname = 'hash') OR NOT d.collisdeterministic"
	"	GROUP BY p.index) "
	"SELECT a.index::regclass, i.indrelid::regclass,"
	"	(SELECT conname FROM pg_constraint WHERE conindid = a.index AND contype IN ('p', 'u', 'x')),"
	"	a.collations, a.recorded, a.actual, pg_relation_size(a.index),"
	"	NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' "
	"FROM affected AS a JOIN pg_index AS i ON i.indexrelid = a.index JOIN pg_class AS c ON c.oid = a.index "
	"ORDER BY 7 DESC NULLS LAST, a.index";

void
gs_collation_query(const char *query, bool all, Datum argument, Oid type)
{
	int			level = NewGUCNestLevel();
	Oid			types[] = {BOOLOID, type};
	Datum		values[] = {BoolGetDatum(all), argument};

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	if (SPI_execute_with_args(query, OidIsValid(type) ? 2 : 1, types, values, NULL, false, 0) < 0)
		elog(ERROR, "a query of the catalogs failed");
	AtEOXact_GUC(false, level);
}

/* gpusort_collation_check([all_indexes boolean]) */
Datum
gpusort_collation_check(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	enum
	{
		BROKEN = GS_COLUMN_SIZE,
		DETAIL,
		N_COLUMNS
	};

	InitMaterializedSRF(fcinfo, 0);
	SPI_connect();
	gs_collation_query(gs_collation_indexes, PG_GETARG_BOOL(0), (Datum) 0, InvalidOid);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Datum		values[N_COLUMNS];
		bool		nulls[N_COLUMNS];
		char	   *detail;
		GsIndexOrder order;

		heap_deform_tuple(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, values, nulls);
		order = gs_index_order(DatumGetObjectId(values[GS_COLUMN_INDEX - 1]), &detail);
		if (order == GS_ORDER_GONE)
			continue;
		values[BROKEN] = BoolGetDatum(order == GS_ORDER_BROKEN);
		nulls[BROKEN] = order == GS_ORDER_UNKNOWN;
		nulls[DETAIL] = detail == NULL;
		if (detail)
			values[DETAIL] = CStringGetTextDatum(detail);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}
