# gpusort: build, installation and tests, on PostgreSQL's PGXS.
#
#   make                build gpusort.so
#   make install        install it into the server that PG_CONFIG belongs to
#   make installcheck   a few tests on the server that runs (PGHOST, PGPORT, PGUSER)
#   make test           set up and run every suite's quick tests; needs nothing prepared
#   make check-all      all tests
#   make demo           see what it does, on a private server
#   make check-unit check-regress check-isolation check-tap lint
#                       all tests of one suite
#   make check-postgres PostgreSQL's own tests with every sort forced onto gpusort
#   make fuzz           random queries against PostgreSQL, see test/README.md
#   make bench          what it gains on this machine, in three minutes
#   make bench-device   the device's engines against published ones, on data that lie there
#   make cuda           compile the CUDA device alone
#   make dist           source archives of the last commit, in build/dist
#   make deb            Debian packages for the installed servers, in build/deb
#   make rpm            an RPM package, in build/rpm
#   make docker         a Docker image
#   make cnpg           an extension image for CloudNativePG
#
# Variables:
#   PG_CONFIG=path      the server to build against (default: pg_config)
#   CUDA=auto|yes|no    compile the CUDA device; auto: where nvcc is found
#   CUDA_ARCH=auto|all|"90 ..."
#                       the GPU architectures to compile for; auto: those of this machine's
#                       GPUs, or where it has none 9.0, and PTX that any GPU's driver can
#                       translate; all: all common ones, as packages should
#   CUDA_ARCHIVE=path   link the CUDA device that "make cuda" has compiled there
#   PAPERS=yes          compile the published algorithms of cuda/papers and the setting gpusort.engine,
#                       to compare with
#   WERROR=1            more warnings, and all of them errors
#   FAULTS=1            compile in the fault points that the tests use, and check assertions
#
# Works from another directory too: make -f /path/to/gpusort/Makefile

EXTENSION = gpusort
MODULE_big = gpusort
DATA = $(filter-out $(DATA_built),$(call sources,sql/gpusort--*.sql))
DATA_built = $(patsubst %.in,%.sql,$(call sources,sql/gpusort--*.in))
# for administrators, beside the server's programs
SCRIPTS_built = gpusort-enable
PGFILEDESC = "gpusort - sorting on the GPU"

ROOT := $(patsubst %/,%,$(dir $(firstword $(MAKEFILE_LIST))))

# test/README.md says what else there is; that needs a server with fault points
REGRESS = installcheck
REGRESS_PREP = installcheck_files
REGRESS_OPTS = --inputdir=build/installcheck --outputdir=build/installcheck --load-extension=gpusort

# As many jobs as there are processors, unless make was told how many
MAKEFLAGS += -j$(shell nproc)

# Targets that set things up themselves must work where there is no
# PostgreSQL yet: they are scripts, and PGXS is not read for them.
SCRIPT_GOALS = test check-all demo check-unit check-regress check-isolation check-tap check-postgres lint bench \
	bench-device fuzz dist deb rpm docker cnpg
ifneq ($(filter $(SCRIPT_GOALS),$(MAKECMDGOALS)),)

.PHONY: $(SCRIPT_GOALS)
test:
	@$(ROOT)/test/run.sh --quick
check-all:
	@$(ROOT)/test/run.sh
check-unit:
	@$(ROOT)/test/run.sh unit
check-regress:
	@$(ROOT)/test/run.sh regress
check-isolation:
	@$(ROOT)/test/run.sh isolation
check-tap:
	@$(ROOT)/test/run.sh tap
lint:
	@$(ROOT)/test/run.sh lint
fuzz:
	@FUZZ_CASES=$${FUZZ_CASES:-1000} FUZZ_SEED=$${FUZZ_SEED:-random} \
		GPUSORT_TEST_DEVICE=$${FUZZ_DEVICE:-$${GPUSORT_TEST_DEVICE:-host}} $(ROOT)/test/run.sh fuzz
check-postgres:
	@$(ROOT)/test/check_postgres.sh
demo:
	@$(ROOT)/test/demo.sh
bench:
	@$(ROOT)/test/bench/report.sh
bench-device:
	@$(ROOT)/test/bench/device/run.sh
dist:
	@$(ROOT)/packaging/dist.sh
deb:
	@$(ROOT)/packaging/deb.sh
rpm:
	@$(ROOT)/packaging/rpm.sh
docker:
	@$(ROOT)/packaging/docker.sh
cnpg:
	@$(ROOT)/packaging/docker.sh extension

else

# not for the scripts, to which these may come from the environment
CUDA = auto
PAPERS = no
WERROR = 0
FAULTS = 0

sources = $(sort $(patsubst $(ROOT)/%,%,$(foreach p,$(1),$(wildcard $(ROOT)/$(p)))))

C_SOURCES := $(call sources,src/*.c src/*/*.c src/*/*/*.c)
OBJS = $(C_SOURCES:.c=.o)

# (PGXS has a VERSION, of the server)
GPUSORT_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(ROOT)/gpusort.control)

# $(srcdir) is known once PGXS is read; these are expanded after that
PG_CPPFLAGS = -I$(ROOT)/src -DGPUSORT_VERSION=$(GPUSORT_VERSION)
PG_CFLAGS = -MMD -MP
SHLIB_LINK = -Wl,--version-script=$(ROOT)/gpusort.map -lpthread -lm

ifeq ($(FAULTS),1)
PG_CPPFLAGS += -DGPUSORT_FAULTS -DUSE_ASSERT_CHECKING
endif
ifeq ($(PAPERS),yes)
PG_CPPFLAGS += -DGS_WITH_PAPERS
endif

# The server's own headers are not clean under these three
ifeq ($(WERROR),1)
PG_CFLAGS += -Wall -Wextra -Werror \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
endif

#
# The CUDA device: a static archive, which packages for several servers
# share.  The CUDA runtime is linked in statically, so that the library loads
# on machines that know nothing of CUDA.
#
ifneq ($(filter-out auto yes no,$(CUDA)),)
$(error CUDA must be auto, yes or no, not "$(CUDA)")
endif

ifneq ($(CUDA),no)
NVCC := $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
ifeq ($(NVCC)$(CUDA),yes)
$(error CUDA=yes, but nvcc is neither on PATH nor in /usr/local/cuda/bin)
endif
endif

ifneq ($(NVCC),)
CUDA_ARCHIVE ?=
ifeq ($(CUDA_ARCHIVE),)
CUDA_ARCHIVE := cuda/libgpusort_cuda.a
CUDA_SOURCES := $(call sources,cuda/*/*.cu)
CUDA_OBJS = $(patsubst %.cu,%.o,$(if $(filter yes,$(PAPERS)),$(CUDA_SOURCES),$(filter-out cuda/papers/%,$(CUDA_SOURCES))))
endif

# The toolkit's own idea of where it lies: nvcc on PATH may be a wrapper
CUDA_HOME := $(realpath $(shell $(NVCC) --dryrun -c -o /dev/null $(ROOT)/Makefile -x cu 2>&1 | \
	sed -n 's/^\#\$$ TOP=//p'))
CUDA_LIBDIR := $(dir $(firstword $(wildcard $(patsubst %,$(CUDA_HOME)/%/libcudart_static.a,\
	lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib))))

# Machine code for CUDA_ARCHS, PTX for CUDA_PTX and whatever is newer.  10.3 runs the code of 10.0, and 12.1
# that of 12.0; Jetsons (8.7, 11.0) run no code of others.  GPUs between these run the oldest one's PTX
CUDA_ARCH ?= auto
ifeq ($(CUDA_ARCH),all)
CUDA_ARCHS := $(filter $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)),75 80 86 87 89 90 100 110 120)
CUDA_PTX := $(firstword $(CUDA_ARCHS)) $(lastword $(CUDA_ARCHS))
else ifeq ($(CUDA_ARCH),auto)
CUDA_GPUS := $(sort $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)))
CUDA_ARCHS := $(or $(CUDA_GPUS),90)
CUDA_PTX := $(if $(CUDA_GPUS),$(lastword $(CUDA_GPUS)),75)
else
CUDA_ARCHS := $(CUDA_ARCH)
CUDA_PTX := $(lastword $(CUDA_ARCHS))
endif

NVCCFLAGS = -O3 -std=c++17 -lineinfo -I$(ROOT)/src -I$(ROOT)/cuda \
	$(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	$(foreach a,$(CUDA_PTX),-gencode arch=compute_$(a),code=compute_$(a)) \
	-Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra
ifeq ($(FAULTS),1)
NVCCFLAGS += -DGPUSORT_FAULTS
endif
ifeq ($(PAPERS),yes)
NVCCFLAGS += -DGS_WITH_PAPERS
endif
ifeq ($(WERROR),1)
NVCCFLAGS += -Werror all-warnings
endif

PG_CPPFLAGS += -DGS_WITH_CUDA
SHLIB_LINK += $(CUDA_ARCHIVE) -L$(CUDA_LIBDIR) -lcudart_static -lstdc++ -ldl -lrt
endif

FLAGS_FILE = gpusort.flags
EXTRA_CLEAN = $(FLAGS_FILE) $(OBJS:.o=.d) $(CUDA_SOURCES:.cu=.o) $(CUDA_SOURCES:.cu=.d) \
	cuda/libgpusort_cuda.a build

PG_CONFIG = pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error "$(PG_CONFIG)" does not work: install PostgreSQL's server headers or set PG_CONFIG)
endif

# No LLVM bitcode: PostgreSQL inlines small functions only, and gpusort has none
override with_llvm = no

# Out of tree, objects of an in-tree build must not be found through VPATH
override VPATH =

include $(PGXS)

ifneq ($(ROOT),.)
$(addsuffix .control,$(EXTENSION)): ;
endif

# gpusort--OLD--NEW.in drops what NEW defines anew; gpusort--NEW.sql defines it
sql/%.sql: $(ROOT)/sql/%.in $(addprefix $(ROOT)/,$(DATA))
	mkdir -p sql
	{ cat $<; sed '1,/^-- New in /d' $(ROOT)/sql/gpusort--$(lastword $(subst --, ,$*)).sql; } >$@

gpusort-enable: $(ROOT)/packaging/gpusort-enable
	cp $< $@

# pg_regress wants tests and answers side by side
.PHONY: installcheck_files
installcheck_files:
	rm -rf build/installcheck
	mkdir -p build/installcheck/sql build/installcheck/expected
	cp $(REGRESS:%=$(ROOT)/test/sql/%.sql) build/installcheck/sql
	cp $(wildcard $(REGRESS:%=$(ROOT)/expected/%*.out)) build/installcheck/expected

# Objects depend on the flags that they were compiled with
.PHONY: force
$(FLAGS_FILE): force
	@echo '$(CC) $(CFLAGS) $(CPPFLAGS) | $(NVCC) $(NVCCFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(CFLAGS) $(CPPFLAGS) | $(NVCC) $(NVCCFLAGS)' >$@

object_dirs = $(sort $(dir $(OBJS) $(CUDA_OBJS)))
ifneq ($(ROOT),.)
$(OBJS) $(CUDA_OBJS): | $(object_dirs)
$(object_dirs):
	mkdir -p $@
endif

$(OBJS): %.o: $(ROOT)/%.c $(FLAGS_FILE)
	$(COMPILE.c) -o $@ $<

$(shlib): $(ROOT)/gpusort.map $(CUDA_ARCHIVE)

ifneq ($(CUDA_OBJS),)
$(CUDA_OBJS): %.o: $(ROOT)/%.cu $(FLAGS_FILE)
	$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $*.d -c -o $@ $<

$(CUDA_ARCHIVE): $(CUDA_OBJS)
	rm -f $@
	$(AR) crs $@ $^
endif

# (there is a folder of this name)
.PHONY: cuda
cuda: $(CUDA_ARCHIVE)
ifeq ($(NVCC),)
	$(error there is no nvcc to compile the CUDA device)
endif

-include $(wildcard $(OBJS:.o=.d) $(CUDA_OBJS:.o=.d))

endif
