// Tracks when the processes of a file began and ended, and how many selected events they have.
#ifndef TOOLS_NETTRACE_REPORT_PROCESS_LIVES_H_
#define TOOLS_NETTRACE_REPORT_PROCESS_LIVES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tools::report {

inline constexpr std::size_t kMaxLives = 10000;  // later lives are only counted

// The time in which a process executed one program. Times are in ticks.
struct ProcessLife {
  std::size_t host = 0;  // number in ReportModel::hosts()
  std::uint64_t pid = 0;
  std::string name;
  std::uint64_t begin = 0;           // time of the first event that describes the process
  std::optional<std::uint64_t> end;  // none if no end is recorded
  bool existed = true;               // whether the process existed before its first event
  bool replaced = false;             // whether `end` is, or may be, the start of another program
  std::uint64_t events = 0;          // selected events in this life, once it has ended
};

class ProcessLives {
 public:
  // The following functions must be called in order of time. `name` is the name of the process, and
  // `events` the number of its selected events so far.

  // Adds a process that existed before this time. If the process has already been added, only
  // changes its name.
  void Exists(std::size_t host, std::uint64_t pid, std::string name, std::uint64_t ticks,
              std::uint64_t events);
  // Adds a process that was created, or that executed a program.
  void Begin(std::size_t host, std::uint64_t pid, std::string name, std::uint64_t ticks,
             std::uint64_t events);
  void End(std::size_t host, std::uint64_t pid, std::string name, std::uint64_t ticks,
           std::uint64_t events);

  // Returns the first kMaxLives lives, in the order in which they began.
  const std::vector<ProcessLife>& lives() const { return lives_; }
  // Returns the time of the first life that lives() lacks; nullopt if it lacks none.
  std::optional<std::uint64_t> first_left_out() const { return first_left_out_; }
  // Returns the number of processes that had selected events and ended, and whose last life is
  // not in lives().
  std::uint64_t ends_left_out() const { return ends_left_out_; }
  // Return the times of the first and the last call; 0 without a call.
  std::uint64_t first() const { return first_ticks_; }
  std::uint64_t last() const { return last_ticks_; }

 private:
  using Key = std::pair<std::size_t, std::uint64_t>;  // host and pid

  void AddTime(std::uint64_t ticks);
  // Returns the life of a process that has not ended, or nullptr.
  ProcessLife* Open(const Key& key);
  // Adds a life. Returns nullptr if there are too many.
  ProcessLife* Add(const Key& key, std::string name, std::uint64_t ticks, std::uint64_t events);
  void Close(ProcessLife* life, std::uint64_t ticks, std::uint64_t events);

  std::vector<ProcessLife> lives_;
  absl::flat_hash_map<Key, std::size_t> newest_;  // index in lives_ of a process's last life
  std::optional<std::uint64_t> first_left_out_;
  std::uint64_t ends_left_out_ = 0;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t last_ticks_ = 0;
  bool has_time_ = false;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_PROCESS_LIVES_H_
