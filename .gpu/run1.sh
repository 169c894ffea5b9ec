# base and head: build, conformance on CUDA, spill and planner side by side
set -u
export CUDA_ARCH=90 BENCH_FILE=$FILELIST
R=$PWD
mkdir -p /tmp/base && tar -C /tmp/base -xf .gpu/base.tar
for d in $R /tmp/base; do
	sed -i 's/^pg=.*stock_best.*$/pg=1/; s/pg=$(stock_best "$sql")/pg=1/; s/pgd=$(bench_time "$stock $defaults" "$sql")/pgd=1/; s/pg=$(index_time "gpusort.index_build=off")/pg=1/' $d/test/bench/spill.sh
done
t0=$SECONDS
mkdir -p $R/build/bench /tmp/base/build/bench
for d in $R /tmp/base; do
	make -C $d/build/bench -f $d/Makefile PG_CONFIG=$PG_CONFIG -j8 with_llvm=no CUDA=auto CUDA_ARCH=90 >$OUT/build.$(basename $d).log 2>&1 & p="${p-} $!"
done
for x in $p; do wait $x || echo "build $x failed"; done
echo "built: $((SECONDS-t0)) s"
export BENCH_LOCK=/tmp/lock
(cd /tmp/base && BENCH_COMMIT=41045b0 BENCH_RUNS=3 test/bench/spill.sh order index >$OUT/spill.base 2>&1) & a=$!
(cd $R && BENCH_RUNS=3 test/bench/spill.sh order index >$OUT/spill.head 2>&1) & b=$!
wait $a; wait $b
echo "spill: $((SECONDS-t0)) s"
cat $OUT/spill.base $OUT/spill.head
(BENCH_SECONDS=200 BENCH_RUNS=5 timeout 280 test/bench/never_slower.sh sessions small "last orders" "product and status" "fresh status" "lower of it" >$OUT/never 2>&1)
cat $OUT/never
echo "never: $((SECONDS-t0)) s"
