// SPDX-License-Identifier: Apache-2.0
// The module that the library loads for several ranks: the only source that sees MPI.
//
// Invariants
//  1. All messages of a communicator have the tag of the current sequence. A failed exchange, on
//     any rank, ends the sequence: a message that was sent in it and not received is never mistaken
//     for a message of the next one.
//  2. A message with the tag kGaveUp holds the number of the sequence that its sender left, the
//     number of exchanges that it had completed in it, and a text. A waiting rank looks for one. It
//     gives up if it waits in an exchange that the sender did not complete, even if its own
//     messages have all arrived: the sender's memory may have changed before MPI read it.
//  3. MPI cannot cancel a running send. A failed exchange keeps the bytes of its running sends
//     until MPI is done with them.
//  4. MPI_Finalize waits for all ranks. It is called only after a barrier, which a rank whose last
//     exchange has failed does not enter; it sends the tag kEnded instead.
// Without the bindings for C++, which have objects of static life time.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "palimpsest/distributed/communicator.hpp"

namespace palimpsest::distributed_detail {
namespace {

constexpr int kGaveUp = 1, kEnded = 2;
constexpr int kFirstTag = 16, kTags = 16384;
// MPI counts with an int.
constexpr std::size_t kLongest = std::size_t{1} << 30;

// Bytes move only while MPI tests. So a rank pauses only after a transfer has had the time to end,
// and then after a number of tests: a sum of 2 MB over two ranks takes 0.4 ms; 1.2 ms with a pause
// after each test.
constexpr double kAwake_s = 0.02;
constexpr long kTests = 64;

constexpr const char* kOtherProgram = ". Its program, shapes or placements are others";

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// The last exchange of the program.
bool last_failed = false;

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, MpiFunctions::Hold hold) : hold_(hold) {
    MPI_Comm_dup(comm, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  // The communicator is left to the end of MPI: freeing it is collective.
  ~MpiCommunicator() override = default;
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::string exchange(std::span<const Parcel> parcels, std::span<const Place> places,
                       double timeout_s) noexcept override {
    try {
      has_left_ = false;
      std::string problem = exchange_all(parcels, places, timeout_s);
      last_failed = !problem.empty();
      if (!last_failed) {
        ++completed_;
        return problem;
      }
      // Tells the ranks that wait for this one.
      if (!is_told_)
        abandon(problem);
      else
        next_sequence();
      has_left_ = true;
      return problem;
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  void abandon(std::string_view why) noexcept override {
    if (std::exchange(has_left_, false)) return;  // its own exchange failed
    try {
      const std::array<long long, 2> where{sequence_, completed_};
      notice_.assign(reinterpret_cast<const char*>(where.data()), sizeof where);
      notice_ += why.substr(0, 2000);
      tell_all(notice_, kGaveUp);
    } catch (const std::exception&) {
      // Others end by their time limit.
    }
    next_sequence();
  }

  /// At the end of the program: will all ranks call MPI_Finalize? None does if the last exchange of
  /// one of them has failed, since that one enters no barrier.
  bool all_end() noexcept {
    if (last_failed) {
      tell_all({}, kEnded);
      return false;
    }
    MPI_Request barrier;
    if (MPI_Ibarrier(comm_, &barrier) != MPI_SUCCESS) return false;
    for (;;) {
      int done = 0, has_ended = 0;
      if (MPI_Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (done) return true;
      MPI_Iprobe(MPI_ANY_SOURCE, kEnded, comm_, &has_ended, MPI_STATUS_IGNORE);
      if (has_ended) return false;
      const timespec pause{0, 50000};
      nanosleep(&pause, nullptr);
    }
  }

 private:
  // Small messages leave at once. Freed requests are completed by MPI.
  void tell_all(std::string_view text, int tag) noexcept {
    for (int peer = 0; peer < size_; ++peer) {
      MPI_Request request;
      if (peer != rank_ && MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_BYTE, peer,
                                     tag, comm_, &request) == MPI_SUCCESS) {
        MPI_Request_free(&request);
      }
    }
  }
  int tag() const { return kFirstTag + static_cast<int>(sequence_ % kTags); }
  void next_sequence() {
    ++sequence_;
    completed_ = 0;
  }

  std::string exchange_all(std::span<const Parcel> parcels, std::span<const Place> places,
                           double timeout_s) {
    is_told_ = false;
    forget_delivered();
    std::vector<MPI_Request> requests;
    std::vector<int> peers;
    std::vector<std::span<const std::byte>> bytes;
    std::vector<int> expected;  // bytes to receive; those that receive come first
    int error = MPI_SUCCESS;
    const auto note = [&](int result, int peer, const MPI_Request& request,
                          std::span<const std::byte> part) {
      if (result != MPI_SUCCESS) error = result;
      requests.push_back(request);
      peers.push_back(peer);
      bytes.push_back(part);
    };
    for (const Place& place : places) {
      for (std::size_t at = 0; at < place.bytes.size(); at += kLongest) {
        const int n = static_cast<int>(std::min(kLongest, place.bytes.size() - at));
        MPI_Request request = MPI_REQUEST_NULL;
        expected.push_back(n);
        note(MPI_Irecv(place.bytes.data() + at, n, MPI_BYTE, place.peer, tag(), comm_, &request),
             place.peer, request, place.bytes.subspan(at, static_cast<std::size_t>(n)));
      }
    }
    for (const Parcel& parcel : parcels) {
      for (std::size_t at = 0; at < parcel.bytes.size(); at += kLongest) {
        const int n = static_cast<int>(std::min(kLongest, parcel.bytes.size() - at));
        MPI_Request request = MPI_REQUEST_NULL;
        note(MPI_Isend(parcel.bytes.data() + at, n, MPI_BYTE, parcel.peer, tag(), comm_, &request),
             parcel.peer, request, parcel.bytes.subspan(at, static_cast<std::size_t>(n)));
      }
    }
    std::string problem = error == MPI_SUCCESS ? wait(requests, peers, expected, timeout_s)
                                               : "MPI: " + text_of(error);
    if (!problem.empty()) give_up(requests, bytes);
    return problem;
  }

  std::string wait(std::vector<MPI_Request>& requests, const std::vector<int>& peers,
                   const std::vector<int>& expected, double timeout_s) {
    std::vector<MPI_Status> statuses(requests.size());
    const double start = now_s();
    for (long round = 1;; ++round) {
      int done = 0;
      const int error =
          MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
      if (error != MPI_SUCCESS) return failed_request(error, statuses, peers);
      if (std::string notice = notice_of_others(); !notice.empty()) return notice;
      if (done) return missing_bytes(statuses, peers, expected);
      sched_yield();
      if (round % kTests != 0) continue;
      const double waited = now_s() - start;
      if (waited > timeout_s) return silent(requests, peers, timeout_s);
      if (waited < kAwake_s) continue;
      const timespec pause{0, 50000};
      nanosleep(&pause, nullptr);
    }
  }

  // A message that is too long is an error of MPI, one that is too short is not.
  static std::string missing_bytes(const std::vector<MPI_Status>& statuses,
                                   const std::vector<int>& peers,
                                   const std::vector<int>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      int n = 0;
      MPI_Get_count(&statuses[i], MPI_BYTE, &n);
      if (n == expected[i]) continue;
      return "rank " + std::to_string(peers[i]) + " sent " + std::to_string(n) +
             " bytes, expected " + std::to_string(expected[i]) + kOtherProgram;
    }
    return {};
  }

  static std::string failed_request(int error, const std::vector<MPI_Status>& statuses,
                                    const std::vector<int>& peers) {
    if (error != MPI_ERR_IN_STATUS) return "MPI: " + text_of(error);
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      const int own = statuses[i].MPI_ERROR;
      if (own == MPI_SUCCESS || own == MPI_ERR_PENDING) continue;
      int kind = MPI_SUCCESS;
      MPI_Error_class(own, &kind);
      if (kind == MPI_ERR_TRUNCATE) {
        return "rank " + std::to_string(peers[i]) + " sent more bytes than expected" +
               kOtherProgram;
      }
      return "MPI, with rank " + std::to_string(peers[i]) + ": " + text_of(own);
    }
    return "MPI: " + text_of(error);
  }

  std::string silent(std::vector<MPI_Request>& requests, const std::vector<int>& peers,
                     double timeout_s) const {
    std::vector<int> waiting;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      int done = 0;
      if (requests[i] != MPI_REQUEST_NULL)
        MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
      if (requests[i] != MPI_REQUEST_NULL && !done) waiting.push_back(peers[i]);
    }
    std::sort(waiting.begin(), waiting.end());
    waiting.erase(std::unique(waiting.begin(), waiting.end()), waiting.end());
    std::string text = "rank " + std::to_string(rank_) + " has waited " +
                       std::to_string(static_cast<long>(timeout_s)) + " s for rank";
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      text += (i == 0 ? " " : ", ") + std::to_string(waiting[i]);
    }
    return text;
  }

  struct Notice {
    long long sequence, completed;
    std::string text;
  };

  // The message of a rank that takes no part in this exchange, if any.
  std::string notice_of_others() {
    for (;;) {
      int found = 0;
      MPI_Status status;
      if (MPI_Iprobe(MPI_ANY_SOURCE, kGaveUp, comm_, &found, &status) != MPI_SUCCESS) break;
      if (!found) break;
      int n = 0;
      MPI_Get_count(&status, MPI_BYTE, &n);
      std::string bytes(static_cast<std::size_t>(n), '\0');
      MPI_Recv(bytes.data(), n, MPI_BYTE, status.MPI_SOURCE, kGaveUp, comm_, MPI_STATUS_IGNORE);
      std::array<long long, 2> where{};
      if (bytes.size() < sizeof where) continue;
      std::memcpy(where.data(), bytes.data(), sizeof where);
      notices_.push_back(
          {where[0], where[1],
           "rank " + std::to_string(status.MPI_SOURCE) + " failed: " + bytes.substr(sizeof where)});
    }
    std::erase_if(notices_, [&](const Notice& n) { return n.sequence < sequence_; });
    for (const Notice& notice : notices_) {
      if (notice.sequence == sequence_ && notice.completed > completed_) continue;
      is_told_ = true;
      sequence_ = notice.sequence;
      return notice.text;
    }
    return {};
  }

  void give_up(std::vector<MPI_Request>& requests,
               const std::vector<std::span<const std::byte>>& bytes) {
    for (MPI_Request& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
    const double start = now_s();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      MPI_Request& request = requests[i];
      int done = 0;
      while (request != MPI_REQUEST_NULL && !done && now_s() - start < 1) {
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
        if (!done) sched_yield();
      }
      if (request == MPI_REQUEST_NULL) continue;
      hold_(bytes[i], true);
      left_.push_back({request, bytes[i]});
    }
  }
  // Ends the hold of bytes that MPI has done with.
  void forget_delivered() {
    std::erase_if(left_, [&](Left& message) {
      int done = 0;
      if (MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
        return false;
      hold_(message.bytes, false);
      return true;
    });
  }

  // A message that a failed exchange left behind.
  struct Left {
    MPI_Request request;
    std::span<const std::byte> bytes;
  };

  MpiFunctions::Hold hold_;
  std::vector<Left> left_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  long long sequence_ = 0, completed_ = 0;
  std::vector<Notice> notices_;  // of exchanges that this rank has not come to
  std::string notice_;
  bool is_told_ = false;   // the last exchange failed because another rank gave up
  bool has_left_ = false;  // the last exchange failed, for any reason
};

// The communicator of all ranks; null if the program has begun MPI, and ends it.
MpiCommunicator* of_all_ranks = nullptr;

Communicator* open(const void* mpi_comm, MpiFunctions::Hold hold, std::string& problem) {
  int is_initialized = 0, is_finalized = 0, provided = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_finalized) {
    problem = "MPI_Finalize has been called";
    return nullptr;
  }
  if (!is_initialized) {
    const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (error != MPI_SUCCESS) {
      problem = text_of(error);
      return nullptr;
    }
    of_all_ranks = new MpiCommunicator(MPI_COMM_WORLD, hold);
    // The program did not begin MPI, so it does not end it.
    std::atexit([] {
      int is_over = 0;
      MPI_Finalized(&is_over);
      if (!is_over && of_all_ranks->all_end()) MPI_Finalize();
    });
    if (!mpi_comm) return of_all_ranks;
  }
  return new MpiCommunicator(mpi_comm ? *static_cast<const MPI_Comm*>(mpi_comm) : MPI_COMM_WORLD,
                             hold);
}

}  // namespace
}  // namespace palimpsest::distributed_detail

extern "C" {
__attribute__((visibility(
    "default"))) extern const palimpsest::distributed_detail::MpiFunctions palimpsest_mpi_functions;
const palimpsest::distributed_detail::MpiFunctions palimpsest_mpi_functions{
    &palimpsest::distributed_detail::open};
}
