/* SPDX-License-Identifier: Apache-2.0 */
/* The copy-on-write protocol of src/palimpsest/memory/cow_protocol.hpp, for spin.
 *
 * One block, up to STORAGES owners of it. Every access to the word is one step; a copy takes CHUNKS
 * steps with a look at the word after each, as in the template. Parking is what parking.cpp does:
 * the test of the word and going to sleep are one step under the mutex of the bucket, waking is
 * another one, apart from the change of the word and without a look at it.
 *
 * Checked in every interleaving: nothing uses the block once it is freed; nobody writes while another
 * one reads or copies; the block is freed once, and every half-made copy is given back; nobody
 * waits for ever; after a failed allocation the owner can try again. With ALL_WRITE each storage
 * writes once, and there are exactly STORAGES - 1 copies and one take-over. Without, each does
 * what it likes: read, write, overwrite, clone, drop, in any order and number.
 *
 * NEGATIVE is the control that must fail: the reference is given up before the copy is protected.
 */

#ifndef STORAGES
#define STORAGES 3
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifdef ALL_WRITE
#define AT_START STORAGES
#else
#define AT_START 1
#endif

byte refs = AT_START, copiers = 0;  /* the word */
byte reading = 0, copying = 0;      /* who looks at the data at present */
bool writing = false, freed = false;
byte alive = AT_START;              /* storages that still refer to the block */
byte made = AT_START;               /* storages ever made */
byte copies = 0, halfmade = 0;
bool taken_over = false;
bool may_fail = true;               /* one allocation is going to fail, or none */
bool parked[STORAGES];

/* what became of an owner that wrote */
#define STILL 0 /* an owner as before: the allocation failed */
#define SOLE_OWNER 1
#define LEFT 2

#define USE_WORD assert(!freed)
#define SOLE (refs == 1 && copiers == 0)

inline free_block() {
  assert(!freed && !writing && reading == 0 && copying == 0);
  freed = true
}

inline unpark_all() {
  d_step {
    i = 0;
    do
    :: i < STORAGES -> parked[i] = false; i++
    :: else -> break
    od;
    i = 0
  }
}

/* The data of this owner is its own: write it. */
inline write_in_place() {
  d_step {
    assert(!freed && SOLE && !writing && reading == 0 && copying == 0);
    writing = true
  };
  d_step { assert(!freed && reading == 0 && copying == 0); writing = false }
}

inline leave() {
  d_step { alive--; outcome = LEFT }
}

/* cow::materialize */
inline materialize() {
  do
  :: d_step { USE_WORD; seen_refs = refs; seen_copiers = copiers };
     if
     :: seen_refs == 1 -> outcome = SOLE_OWNER; goto materialized
     :: seen_refs != 1 && seen_refs - seen_copiers == 1 ->
        /* park(word, seen) */
        do
        :: atomic {
             USE_WORD;
             if
             :: refs == seen_refs && copiers == seen_copiers -> parked[me] = true
             :: else -> break
             fi
           };
           !parked[me]
        od
     :: seen_refs - seen_copiers > 1 ->
#ifdef NEGATIVE
        d_step { USE_WORD; refs-- };
        break
#else
        /* compare and swap; when it fails, look again */
        atomic {
          USE_WORD;
          if
          :: refs == seen_refs && copiers == seen_copiers -> copiers++; break
          :: else
          fi
        }
#endif
     fi
  od;
  atomic { seen_refs = 0; seen_copiers = 0 };
  /* allocate */
  if
  :: halfmade++
#ifndef NEGATIVE
  :: may_fail -> may_fail = false;
     atomic { USE_WORD; wake = (refs - copiers == 1); copiers-- };
     if
     :: wake -> wake = false; unpark_all()
     :: else
     fi;
     outcome = STILL;
     goto materialized
#endif
  fi;
  chunk = 0;
  do
  :: chunk < CHUNKS ->
     d_step { assert(!freed && !writing); copying++ };
     d_step { assert(!freed && !writing); copying--; chunk++ };
#ifndef NEGATIVE
     d_step { USE_WORD; wake = (refs == 1 && copiers == 1) };
     if
     :: wake -> wake = false;
        d_step { USE_WORD; copiers--; chunk = 0; halfmade-- };
        outcome = SOLE_OWNER;
        goto materialized
     :: else
     fi
#endif
  :: else -> chunk = 0; break
  od;
  copies++;
#ifdef NEGATIVE
  wake = false;
#else
  /* one subtraction for reference and copier */
  d_step { USE_WORD; refs--; copiers--; wake = SOLE; last = (refs == 0) };
  if
  :: last -> last = false; free_block()
  :: else
  fi;
  if
  :: wake -> wake = false; unpark_all()
  :: else
  fi;
#endif
  halfmade--; /* it is a block like others now */
  leave();
materialized:
  skip
}

/* cow::replace */
inline replace() {
  d_step { USE_WORD; wake = SOLE };
  if
  :: wake -> wake = false; outcome = SOLE_OWNER
  :: !wake && may_fail -> may_fail = false; outcome = STILL
  :: !wake ->
     d_step { USE_WORD; refs--; last = (refs == 0) };
     if
     :: last -> last = false; free_block()
     :: else
     fi;
     leave()
  fi
}

inline drop() {
  d_step { USE_WORD; refs--; last = (refs == 0) };
  if
  :: last -> last = false; free_block()
  :: else
  fi;
  leave()
}

proctype Owner(byte me) {
  byte seen_refs, seen_copiers, chunk, i;
  byte outcome = STILL;
  bool wake = false, last = false;
#ifdef ALL_WRITE
  do
  :: materialize();
     if
     :: outcome == STILL
     :: outcome == SOLE_OWNER -> taken_over = true; write_in_place(); outcome = STILL; break
     :: outcome == LEFT -> break
     fi
  od
#else
  do
  :: d_step { assert(!freed && !writing); reading++ };
     d_step { assert(!freed && !writing); reading-- }
  :: atomic { made < STORAGES -> USE_WORD; refs++; alive++; run Owner(made); made++ }
  :: materialize();
     if
     :: outcome == STILL
     :: outcome == SOLE_OWNER -> write_in_place(); outcome = STILL
     :: outcome == LEFT -> break
     fi
  :: replace();
     if
     :: outcome == STILL
     :: outcome == SOLE_OWNER -> write_in_place(); outcome = STILL
     :: outcome == LEFT -> break
     fi
  :: drop(); break
  od
#endif
}

init {
  byte k;
  atomic {
    do
    :: k < AT_START -> run Owner(k); k++
    :: else -> break
    od
  };
#ifdef ALL_WRITE
  _nr_pr == 1;
  assert(copies == STORAGES - 1 && taken_over);
  assert(refs == 1 && copiers == 0 && !freed && halfmade == 0)
#else
  alive == 0 && _nr_pr == 1;
  assert(refs == 0 && copiers == 0 && freed && halfmade == 0)
#endif
}
