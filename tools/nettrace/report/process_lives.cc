#include "tools/nettrace/report/process_lives.h"

#include <algorithm>
#include <tuple>

namespace tools::report {

void ProcessLives::AddTime(std::uint64_t ticks) {
  first_ticks_ = has_time_ ? std::min(first_ticks_, ticks) : ticks;
  last_ticks_ = std::max(last_ticks_, ticks);
  has_time_ = true;
}

ProcessLife* ProcessLives::Open(const Key& key) {
  const auto found = newest_.find(key);
  if (found == newest_.end() || lives_[found->second].end) return nullptr;
  return &lives_[found->second];
}

ProcessLife* ProcessLives::Add(const Key& key, std::string name, std::uint64_t ticks,
                               std::uint64_t events) {
  if (lives_.size() == kMaxLives) {
    if (!first_left_out_) first_left_out_ = ticks;
    newest_.erase(key);
    return nullptr;
  }
  newest_[key] = lives_.size();
  ProcessLife& life = lives_.emplace_back();
  std::tie(life.host, life.pid) = key;
  life.name = std::move(name);
  life.begin = ticks;
  life.events = events;  // Close subtracts this number from the number at the end
  return &life;
}

void ProcessLives::Close(ProcessLife* life, std::uint64_t ticks, std::uint64_t events) {
  life->end = std::max(ticks, life->begin);
  life->events = events - std::min(events, life->events);
}

void ProcessLives::Exists(std::size_t host, std::uint64_t pid, std::string name,
                          std::uint64_t ticks, std::uint64_t events) {
  AddTime(ticks);
  if (ProcessLife* const life = Open({host, pid})) {
    if (!name.empty()) life->name = std::move(name);
  } else {
    Add({host, pid}, std::move(name), ticks, events);
  }
}

void ProcessLives::Begin(std::size_t host, std::uint64_t pid, std::string name, std::uint64_t ticks,
                         std::uint64_t events) {
  AddTime(ticks);
  const Key key = {host, pid};
  if (ProcessLife* const life = Open(key)) {
    // The end of this life is not recorded. The life is marked as replaced, because it is unknown
    // whether the process ended.
    Close(life, ticks, events);
    life->replaced = true;
  } else if (const auto newest = newest_.find(key);
             newest != newest_.end() && lives_[newest->second].end == ticks) {
    lives_[newest->second].replaced = true;
  }
  if (ProcessLife* const life = Add(key, std::move(name), ticks, events)) life->existed = false;
}

void ProcessLives::End(std::size_t host, std::uint64_t pid, std::string name, std::uint64_t ticks,
                       std::uint64_t events) {
  AddTime(ticks);
  const Key key = {host, pid};
  if (ProcessLife* const life = Open(key)) {
    // If a process executes a program, the events for the end of the old program and the start of
    // the new one have the same time and any order. If the start came first, Begin has closed the
    // old life, and `life` is the new one.
    if (life->existed || life->begin != ticks) Close(life, ticks, events);
    return;
  }
  if (newest_.contains(key)) return;  // the process has ended already
  if (ProcessLife* const life =
          first_left_out_ ? nullptr : Add(key, std::move(name), first_ticks_, 0)) {
    return Close(life, ticks, events);
  }
  if (events != 0) ++ends_left_out_;
}

}  // namespace tools::report
