[ -n "${LOCAL-}" ] || { source .gpu-host/setup.sh; xz -dc .gpu-host/icu.txz | tar -C / -xf -; }
N=${N:-10000000}; DEV=${DEV:-cuda}; MEM=${MEM:-300MB}
set -u
R=$PWD; t0=$SECONDS
mkdir -p /tmp/v/{base,head,raw,t16,nolev}
tar -C /tmp/v/base -xf .gpu/base.tar
for v in head raw t16 nolev; do cp -r Makefile gpusort.control gpusort.map META.json sql src cuda /tmp/v/$v/; done
for v in raw t16 nolev; do cp -r .gpu/var/$v/. /tmp/v/$v/; done
M="PG_CONFIG=$PG_CONFIG with_llvm=no CUDA_ARCH=90 ${XM-}"
(cd /tmp/v/base && make -j8 $M >$OUT/b.base 2>&1) & p1=$!
(cd /tmp/v/head && make -j8 $M >$OUT/b.head 2>&1) & p2=$!
D=/tmp/data; mkdir -p $D; 
wait $p1; wait $p2
ps=
for v in raw t16 nolev; do (cd /tmp/v/$v && make -j6 $M ${XA-CUDA_ARCHIVE=/tmp/v/head/cuda/libgpusort_cuda.a} >$OUT/b.$v 2>&1) & ps="$ps $!"; done
for p in $ps; do wait $p; done
ls -la /tmp/v/*/gpusort.so | awk '{print $5,$9}'; echo "built $((SECONDS-t0))"
chmod -R a+rX /tmp/v
C="shared_buffers=4GB;max_wal_size=64GB;checkpoint_timeout=1d;autovacuum=off;max_worker_processes=32;max_parallel_workers=32;parallel_setup_cost=0;parallel_tuple_cost=0;jit=off;fsync=off"
conf() { tr ';' '\n' <<<"$C" | sed 's/^\([a-z_]*\)=\(.*\)$/\1 = \x27\2\x27/'; }
mapfile -t CONF < <(conf)
pg_start /tmp/d0 "${CONF[@]}" || exit 1
chmod a+r $FILELIST
shuf --random-source=<(yes gpusort) $FILELIST >/tmp/f.txt; chmod a+r /tmp/f.txt
psql -qXAt postgres -c "CREATE TABLE f (id int GENERATED ALWAYS AS IDENTITY, p text)"
psql -qXAt postgres -c "COPY f (p) FROM '/tmp/f.txt' (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02')" 2>&1 | head -2
psql -qXAt postgres -c "DELETE FROM f WHERE false" -c "SELECT count(*) FROM f" -c "CREATE TABLE w AS SELECT i AS id, substr(translate(md5(i::text), '0123456789', 'ghijklmnop'), 1, 5 + abs(hashint4(i)) % 12) AS p FROM generate_series(1, $N) AS i" \
 -c "CREATE TABLE r AS SELECT i AS id, chr(65 + abs(hashint4(i + 6)) % 26) || substr(md5(i::text), 1, 4 + abs(hashint4(i)) % 9) AS name, repeat(md5(i::text), 1 + abs(hashint4(i + 8)) % 5) AS note FROM generate_series(1,1000000) i" -c "CREATE INDEX ON r (id)" -c "VACUUM ANALYZE"
pg_stop /tmp/d0
for v in base head raw t16 nolev; do cp -a /tmp/d0 /tmp/d_$v; pg_start /tmp/d_$v "dynamic_library_path = '/tmp/v/$v:\$libdir'" "shared_preload_libraries = 'gpusort'" "unix_socket_directories = '/tmp/d_$v'" "port = 5432" "gpusort.device = '$DEV'"; psql -qXAt postgres -c "select count(*) from f, (select 1) x" -c "select count(*) from w" >/dev/null; done
cp -r /tmp/v/head/sql/*.sql /tmp/v/head/gpusort.control $($PG_CONFIG --sharedir)/extension/; echo "loaded $((SECONDS-t0))"
q() { # version memory sql
 PGHOST=/tmp/d_$1 psql -qXAt postgres -c "SET gpusort.force=on" -c "SET work_mem='64MB'" -c "SET max_parallel_workers_per_gather=8" -c "EXPLAIN (ANALYZE, TIMING OFF) $3" | sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p'; }
state() { for v in base head raw t16 nolev; do PGHOST=/tmp/d_$v psql -qXAt postgres -c "CREATE EXTENSION IF NOT EXISTS gpusort" -c "SELECT '$v', state, memory_limit>>20 FROM gpusort_devices" 2>&1 | head -3; PGHOST=/tmp/d_$v psql -qXAt postgres -c "SET gpusort.force=on" -c "EXPLAIN (COSTS OFF) SELECT id,p FROM w ORDER BY p COLLATE \"C\"" | head -1; done; }
mem() { for v in base head raw t16 nolev; do PGHOST=/tmp/d_$v psql -qXAt postgres -c "ALTER SYSTEM SET gpusort.device_memory='$1'" -c "SELECT pg_reload_conf()" >/dev/null; done; sleep 1; }
state
for m in 0 $MEM; do mem $m
for s in 'SELECT id, p FROM w ORDER BY p COLLATE "C"' 'SELECT id, p FROM f ORDER BY p COLLATE "C"' 'SELECT id, p FROM w ORDER BY p COLLATE "en_US.utf8"' 'SELECT id, p FROM f ORDER BY p COLLATE "en_US.utf8"'; do
 for v in base head raw t16 nolev; do : >/tmp/t.$v; done
 [ $m = 0 ] && [[ "$s" != *" w "*\"C\"* ]] && continue
 for r in 1 2 3 4 5; do for v in base head raw t16 nolev; do [ $m = 0 ] && [[ $v = raw || $v = t16 || $v = nolev ]] && continue; q $v x "$s" >>/tmp/t.$v; done; [ $m = 0 ] && [ $r = 3 ] && break; done
 for v in base head raw t16 nolev; do echo "$m $s | $v | $(sort -n /tmp/t.$v | awk '{v[NR]=$1} END {printf "%s (min %s max %s)", v[int((NR+1)/2)], v[1], v[NR]}')"; done
 [ $((SECONDS-t0)) -gt ${LIM:-230} ] && break
done; done
for k in $(seq 15); do for g in off on; do echo "SET gpusort.enabled=$g;"; echo "\\echo $g"; for z in 1 2; do echo "EXPLAIN (ANALYZE, TIMING OFF) SELECT id, name, note FROM r WHERE id <= 10000 ORDER BY name;"; done; done; done | PGHOST=/tmp/d_head psql -qXAt postgres | awk '/^o/ {g=$1} /^Execution/ {print g, $3}' | sort -k1,1 -k2,2n | awk '{v[$1]=v[$1]" "$2} END {for (g in v) print g":"v[g]}' 
echo "end $((SECONDS-t0))"
