/* SPDX-License-Identifier: Apache-2.0 */
/* The copy-on-write protocol on a device, whose queue runs commands in the order in which threads
 * enqueue them, at any later time; for spin.
 *
 * Memory carries no events and nobody waits: a copy is enqueued before its reference is given up,
 * an overwrite after the last other reference was seen to go, and freed memory is reused at once.
 * Up to STORAGES owners share or own blocks, each in a thread of its own, and read, write,
 * overwrite, clone and drop in any order and number. A stranger takes freed blocks, writes and
 * frees them. One allocation may fail. The word of a block is that of cow.pml, which proves parking
 * and the order of its changes; here each change is one step.
 *
 * Checked in every interleaving: a command that reads for an owner finds the bytes that this owner
 * last wrote or inherited. At the end all blocks are free and all commands have run.
 *
 * Controls that must fail:
 *   EARLY_REFERENCE  the reference is given up before the copy is enqueued
 *   TWO_QUEUES       copies go to a queue of their own, without a wait
 *   EARLY_FREE       memory is given back before its last reader is enqueued
 */

#ifndef STORAGES
#define STORAGES 2
#endif
#define BLOCKS (STORAGES + 1)
#ifndef CLONES
#define CLONES 2  /* ever made */
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#define NONE 0  /* blocks are 1, 2, .. */
#define FIRST 1

mtype = { READ, WRITE, COPY };
/* command, block, version of its bytes, target of a copy */
chan work = [CAPACITY] of { mtype, byte, byte, byte };
#ifdef TWO_QUEUES
chan copies = [CAPACITY] of { mtype, byte, byte, byte };
#else
#define copies work
#endif

/* the host's side: words of blocks */
byte refs[BLOCKS + 1], copiers[BLOCKS + 1];
bool taken[BLOCKS + 1];
bool may_fail = true;
byte alive = 1, clones = 0;
bool is_alive[STORAGES];
byte given_block[STORAGES], given_version[STORAGES]; /* to a clone that begins */
bool stranger_is_done = false;

/* the device's side */
byte bytes_of[BLOCKS + 1];

inline allocate(block) {
  if
  :: atomic { !taken[1] -> taken[1] = true; block = 1 }
  :: atomic { !taken[2] -> taken[2] = true; block = 2 }
  :: atomic { !taken[3] -> taken[3] = true; block = 3 }
#if BLOCKS > 3
  :: atomic { !taken[4] -> taken[4] = true; block = 4 }
#endif
  :: atomic { may_fail -> may_fail = false; block = NONE }
  fi
}

inline release(block) {
  d_step {
    refs[block]--;
    if
    :: refs[block] == 0 -> assert(copiers[block] == 0); taken[block] = false
    :: else
    fi
  }
}

/* A new value in place of the old one. */
inline overwrite(block) {
  atomic {
    assert(refs[block] == 1 && copiers[block] == 0);
    turn = 1 - turn;
    expected = 1 + 2 * me + turn;
    work!WRITE(block, expected, 0)
  }
}

/* A lazy clone is a count: it enqueues nothing. */
inline clone(other) {
  atomic {
    !is_alive[other] && clones < CLONES -> clones++; is_alive[other] = true; alive++; refs[own]++;
    given_block[other] = own; given_version[other] = expected
  }
}

/* cow::materialize; then the owner writes. */
inline write() {
  do
  :: d_step { seen_refs = refs[own]; seen_copiers = copiers[own] };
     if
     :: seen_refs == 1 && seen_copiers == 0 -> overwrite(own); break
     :: !(seen_refs == 1 && seen_copiers == 0) && seen_refs - seen_copiers == 1 ->
        /* parked until the word changes */
        refs[own] != seen_refs || copiers[own] != seen_copiers
     :: seen_refs - seen_copiers > 1 ->
        atomic {
          if
          :: refs[own] == seen_refs && copiers[own] == seen_copiers -> copiers[own]++; fresh = own
          :: else
          fi
        };
        if
        :: fresh == NONE -> goto again
        :: else -> allocate(fresh)
        fi;
        if
        :: fresh == NONE -> copiers[own]--; break
        :: else
        fi;
#ifdef EARLY_REFERENCE
        d_step { copiers[own]--; left = own };
        release(left);
        copies!COPY(left, expected, fresh);
#else
        copies!COPY(own, expected, fresh);
        d_step { copiers[own]--; left = own };
        release(left);
#endif
        d_step { refs[fresh] = 1; own = fresh; fresh = NONE; left = 0 };
        overwrite(own);
        break
     fi;
again:
     skip
  od;
  skip;
  d_step { seen_refs = 0; seen_copiers = 0 }
}

/* cow::replace: all bytes are new, so no copy. */
inline replace() {
  d_step { seen_refs = refs[own]; seen_copiers = copiers[own] };
  if
  :: seen_refs == 1 && seen_copiers == 0 -> overwrite(own)
  :: else ->
     allocate(fresh);
     if
     :: fresh == NONE
     :: else ->
        release(own);
        d_step { refs[fresh] = 1; own = fresh; fresh = NONE };
        overwrite(own)
     fi
  fi;
  skip;
  d_step { seen_refs = 0; seen_copiers = 0 }
}

proctype Owner(byte me) {
  byte own, expected, seen_refs, seen_copiers, fresh, left;
  bit turn;
  do
  :: atomic {
       is_alive[me] -> own = given_block[me]; expected = given_version[me];
       given_block[me] = NONE; given_version[me] = 0
     };
     do
     :: work!READ(own, expected, 0)
     :: clone(0)
     :: clone(1)
#if STORAGES > 2
     :: clone(2)
#endif
     :: write()
     :: replace()
     :: break
     od;
#ifdef EARLY_FREE
     release(own);
     work!READ(own, expected, 0);
#else
     release(own);
#endif
     d_step { is_alive[me] = false; alive--; own = NONE; expected = 0; turn = 0 }
  :: alive == 0 -> break
  od
}

/* Another use of freed memory. */
proctype Stranger() {
  byte block;
  do
  :: atomic { alive == 0 -> break }
  :: atomic {
       if
       :: !taken[1] -> block = 1
       :: !taken[2] -> block = 2
       :: !taken[3] -> block = 3
#if BLOCKS > 3
       :: !taken[4] -> block = 4
#endif
       fi;
       taken[block] = true
     };
     work!WRITE(block, 0, 0);
     d_step { taken[block] = false; block = 0 }
  od;
  stranger_is_done = true
}

/* A queue of the device. */
proctype Runner(chan queue) {
  mtype command;
  byte block, version, target;
  do
  :: alive == 0 && stranger_is_done && empty(queue) -> break
  :: atomic {
       queue?command(block, version, target);
       if
       :: command == READ -> assert(bytes_of[block] == version)
       :: command == WRITE -> bytes_of[block] = version
       :: command == COPY -> assert(bytes_of[block] == version); bytes_of[target] = version
       fi;
       command = 0; block = 0; version = 0; target = 0
     }
  od
}

init {
  atomic {
    taken[FIRST] = true;
    refs[FIRST] = 1;
    bytes_of[FIRST] = 1;
    run Runner(work);
#ifdef TWO_QUEUES
    run Runner(copies);
#endif
    is_alive[0] = true;
    given_block[0] = FIRST;
    given_version[0] = 1;
    run Owner(0);
    run Owner(1);
#if STORAGES > 2
    run Owner(2);
#endif
    run Stranger()
  };
  _nr_pr == 1;
  assert(!taken[1] && !taken[2] && !taken[3])
}
