// Writes recordings with a known story, for the tests of what stands out in `nettrace report`.
// Usage: write_report_stories DIR
//   burst.nettrace    10 minutes; from second 250 to 262, payments are slow and requests fail
//   share.nettrace    10 minutes; 5 % of the requests fail, and from second 300 to 360 18 %
//   spread.nettrace   as share.nettrace, but the errors have 16 names
//   outcomes.nettrace 10 minutes; 4 % of the requests stop with an error, and 16 % from second 300
//                     to 360; retries fail all the time, more often than requests
//   leak.nettrace     1 hour; requests become five times slower
//   million.nettrace  1,000,000 requests; one of them, at second 617, waits 4 s for a lock
//   restart.nettrace  10 minutes; at second 300 the web server ends, and begins again 2.5 s later
//   losses.nettrace   10 minutes; from second 200 to 230, six times the load, and losses
//   script.nettrace   1 minute of a script that runs 50 short commands with the same name
//   calm.nettrace     10 minutes without a story
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/programs/nettrace/report_trace.h"

namespace {

using report_traces::kStartOpcode;
using report_traces::kStopOpcode;
using report_traces::Trace;

constexpr double kMillisecond = 1e6;  // ticks
constexpr double kSecond = 1e9;

nettrace::Guid IdOf(std::uint64_t number) {
  nettrace::Guid id = {};
  std::memcpy(id.data(), &number, sizeof number);
  id.back() = std::byte{1};
  return id;
}

// A shop with a web server, which calls a payment service. Collects events in any order and writes
// them in order of time.
class Shop {
 public:
  enum Kind {
    kRequest,
    kRequestDone,
    kPayment,
    kPaymentDone,
    kFailed,
    kLockWait,
    kHeartbeat,
    kRequestFailed,
    kRetryFailed,
    kKinds
  };
  // Number of further kinds, all of them errors, whose values follow kKinds.
  static constexpr int kNames = 16;
  enum Thread { kWeb, kPaymentThread, kNewWeb, kThreads };

  Shop(const std::string& path, unsigned seed) : trace_(path), random_(seed) {
    kinds_ = {trace_.AddKind("Shop.Web", "Request", kStartOpcode, "Order", false),
              trace_.AddKind("Shop.Web", "RequestDone", kStopOpcode, "Status", false),
              trace_.AddKind("Shop.Payment", "Payment", kStartOpcode, "Order", false),
              trace_.AddKind("Shop.Payment", "PaymentDone", kStopOpcode, "Status", false),
              trace_.AddKind("Shop.Web", "PaymentFailed", 0, "Order", false, 2),
              trace_.AddKind("Shop.Web", "LockWait", 0, "Lock", false, 3),
              trace_.AddKind("Shop.Web", "Heartbeat", 0, "Number", false, 5),
              trace_.AddKind("Shop.Web", "RequestFailed", kStopOpcode, "Status", false, 2),
              trace_.AddKind("Shop.Web", "RetryFailed", 0, "Order", false, 2)};
    for (int i = 0; i < kNames; ++i) {
      kinds_.push_back(
          trace_.AddKind("Shop.Web", "Failed" + std::to_string(i), 0, "Order", false, 2));
    }
    threads_ = {trace_.AddThread("web", 100, 101), trace_.AddThread("payment", 200, 201),
                trace_.AddThread("web", 900, 901)};
    existing_ = trace_.AddKind("Universal.System", "ExistingProcess", 0, "Name", true);
    created_ = trace_.AddKind("Universal.System", "ProcessCreate", 0, "Name", true);
    exited_ = trace_.AddKind("Universal.System", "ProcessExit", 0, "Code", false);
    trace_.Text(existing_, threads_[kWeb], 0, u"web");
    trace_.Text(existing_, threads_[kPaymentThread], 0, u"payment");
  }

  void Add(Kind kind, Thread thread, double at, std::uint64_t activity = 0,
           std::uint64_t related = 0) {
    events_.push_back({static_cast<std::uint64_t>(at), kind, thread, activity, related});
  }
  // Adds the start and the stop of an activity. Returns its number.
  std::uint64_t AddActivity(Kind kind, Thread thread, double at, double duration,
                            std::uint64_t related = 0) {
    const std::uint64_t activity = ++activities_;
    Add(kind, thread, at, activity, related);
    Add(static_cast<Kind>(kind + 1), thread, at + duration, activity);
    return activity;
  }
  // Adds the start of an activity. Returns its number.
  std::uint64_t Begin(Kind kind, Thread thread, double at) {
    Add(kind, thread, at, ++activities_);
    return activities_;
  }
  // Returns a random time until the next event, in ticks, if there are `rate` events per second.
  double Wait(double rate) { return std::exponential_distribution<>(rate)(random_) * kSecond; }
  // Returns a random duration in the unit of `median`.
  double Duration(double median, double deviation = 0.5) {
    return median * std::exp(std::normal_distribution<>(0, deviation)(random_));
  }

  // Loses one of `every` events from `from` to `until`, in ticks. Must be called before Finish.
  void Lose(double from, double until, std::uint64_t every) {
    lost_from_ = from;
    lost_until_ = until;
    lost_every_ = every;
  }
  // Ends the first web server, and begins the second one. Must be called before Finish.
  void Restart(double end, double begin) {
    restart_end_ = end;
    restart_begin_ = begin;
  }
  void Finish() {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.ticks < b.ticks; });
    std::uint64_t written = 0;
    for (const Event& event : events_) {
      const auto at = static_cast<double>(event.ticks);
      WriteProcesses(at);
      if (++written % 20000 == 0) trace_.EndInterval(event.ticks);
      if (at >= lost_from_ && at < lost_until_ && written % lost_every_ == 0) {
        trace_.Lose(written / lost_every_ % 2, 1);
        continue;
      }
      const auto id = [](std::uint64_t number) {
        return number == 0 ? std::nullopt : std::optional(IdOf(number));
      };
      trace_.Number(kinds_[event.kind], threads_[event.thread], event.ticks,
                    static_cast<std::uint32_t>(written), id(event.activity), id(event.related));
    }
    trace_.EndInterval(events_.back().ticks + 1);
    trace_.Finish();
  }

 private:
  struct Event {
    std::uint64_t ticks;
    Kind kind;
    Thread thread;
    std::uint64_t activity;
    std::uint64_t related;
  };

  void WriteProcesses(double at) {
    if (restart_end_ && at >= *restart_end_) {
      trace_.Number(exited_, threads_[kWeb], static_cast<std::uint64_t>(*restart_end_), 139);
      restart_end_.reset();
    }
    if (restart_begin_ && at >= *restart_begin_) {
      trace_.Text(created_, threads_[kNewWeb], static_cast<std::uint64_t>(*restart_begin_), u"web");
      restart_begin_.reset();
    }
  }

  Trace trace_;
  std::mt19937_64 random_;
  std::vector<nettrace::MetadataId> kinds_;
  std::vector<nettrace::ThreadIndex> threads_;
  nettrace::MetadataId existing_ = {};
  nettrace::MetadataId created_ = {};
  nettrace::MetadataId exited_ = {};
  std::vector<Event> events_;
  std::uint64_t activities_ = 0;
  double lost_from_ = 0;
  double lost_until_ = 0;
  std::uint64_t lost_every_ = 1;
  std::optional<double> restart_end_;
  std::optional<double> restart_begin_;
};

// Adds a request with a payment within it. `work` is the median of the
// request's own time before the payment, and of that after it.
void AddRequest(Shop* shop, Shop::Thread thread, double at, double payment,
                double work = kMillisecond) {
  const double before = shop->Duration(work);
  const std::uint64_t request = shop->AddActivity(Shop::kRequest, thread, at, 2 * before + payment);
  shop->AddActivity(Shop::kPayment, Shop::kPaymentThread, at + before, payment, request);
}

void WriteBurst(const std::string& path) {
  Shop shop(path, 1);
  for (double at = shop.Wait(40); at < 600 * kSecond; at += shop.Wait(40)) {
    const bool is_slow = at >= 250 * kSecond && at < 262 * kSecond;
    const double payment =
        is_slow ? shop.Duration(800 * kMillisecond, 0.1) : shop.Duration(5 * kMillisecond);
    AddRequest(&shop, Shop::kWeb, at, payment);
    if (is_slow) shop.Add(Shop::kFailed, Shop::kWeb, at + kMillisecond);
  }
  shop.Finish();
}

// Writes requests, some of them with an error. The errors have `names` different names.
void WriteShare(const std::string& path, int names) {
  Shop shop(path, 7);
  int errors = 0;
  for (double at = shop.Wait(40); at < 600 * kSecond; at += shop.Wait(40)) {
    AddRequest(&shop, Shop::kWeb, at, shop.Duration(5 * kMillisecond));
    const bool is_worse = at >= 300 * kSecond && at < 360 * kSecond;
    // Wait() serves as a random number: a request fails with a probability of about 18 % or 5 %.
    if (shop.Wait(1) < (is_worse ? 0.2 : 0.05) * kSecond) {
      const int name = names == 1 ? int{Shop::kFailed} : Shop::kKinds + errors++ % names;
      shop.Add(static_cast<Shop::Kind>(name), Shop::kWeb, at + kMillisecond);
    }
  }
  shop.Finish();
}

void WriteOutcomes(const std::string& path) {
  Shop shop(path, 8);
  for (double at = shop.Wait(40); at < 600 * kSecond; at += shop.Wait(40)) {
    const bool is_worse = at >= 300 * kSecond && at < 360 * kSecond;
    const bool has_failed = shop.Wait(1) < (is_worse ? 0.174 : 0.041) * kSecond;
    const double duration = shop.Duration(5 * kMillisecond);
    const std::uint64_t request = shop.Begin(Shop::kRequest, Shop::kWeb, at);
    shop.Add(has_failed ? Shop::kRequestFailed : Shop::kRequestDone, Shop::kWeb, at + duration,
             request);
    if (shop.Wait(1) < 0.2 * kSecond) shop.Add(Shop::kRetryFailed, Shop::kWeb, at);
  }
  shop.Finish();
}

void WriteLeak(const std::string& path) {
  Shop shop(path, 2);
  for (double at = shop.Wait(10); at < 3600 * kSecond; at += shop.Wait(10)) {
    AddRequest(&shop, Shop::kWeb, at, shop.Duration(5 * kMillisecond),
               5 * kMillisecond * (1 + 4 * at / (3600 * kSecond)));
  }
  shop.Finish();
}

void WriteMillion(const std::string& path) {
  Shop shop(path, 3);
  bool has_waited = false;
  double at = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    at += shop.Wait(1000);
    if (at < 617 * kSecond || has_waited) {
      shop.AddActivity(Shop::kRequest, Shop::kWeb, at, shop.Duration(2 * kMillisecond));
      continue;
    }
    has_waited = true;
    const std::uint64_t request = shop.AddActivity(Shop::kRequest, Shop::kWeb, at, 4 * kSecond);
    shop.Add(Shop::kLockWait, Shop::kWeb, at + kMillisecond, request);
  }
  shop.Finish();
}

void WriteRestart(const std::string& path) {
  Shop shop(path, 4);
  const double end = 300 * kSecond;
  const double begin = 302.5 * kSecond;
  shop.Restart(end, begin);
  const auto thread = [&](double at) { return at < end ? Shop::kWeb : Shop::kNewWeb; };
  for (double at = shop.Wait(40); at < 600 * kSecond; at += shop.Wait(40)) {
    if (at < end - kSecond || at > begin) {
      AddRequest(&shop, thread(at), at, shop.Duration(5 * kMillisecond));
    }
  }
  for (double at = 0; at < 600 * kSecond; at += 100 * kMillisecond) {
    if (at < end || at > begin) shop.Add(Shop::kHeartbeat, thread(at), at);
  }
  shop.Finish();
}

void WriteLosses(const std::string& path) {
  Shop shop(path, 5);
  for (double at = shop.Wait(50); at < 600 * kSecond;) {
    const bool is_load = at >= 200 * kSecond && at < 230 * kSecond;
    AddRequest(&shop, Shop::kWeb, at, shop.Duration(5 * kMillisecond));
    at += shop.Wait(is_load ? 300 : 50);
  }
  shop.Lose(200 * kSecond, 230 * kSecond, 4);
  shop.Finish();
}

void WriteScript(const std::string& path) {
  constexpr std::uint64_t kTick = 100'000'000;
  constexpr std::uint64_t kTicks = 600;
  constexpr std::uint64_t kTicksOfCommand = 12;  // from the start of a command to the next one
  Trace trace(path);
  const nettrace::MetadataId heartbeat =
      trace.AddKind("Shop.Web", "Heartbeat", 0, "Number", false, 5);
  const nettrace::MetadataId executed = trace.AddKind("Shop.Kernel", "Exec", 0, "Number", false);
  const nettrace::MetadataId existing =
      trace.AddKind("Universal.System", "ExistingProcess", 0, "Name", true);
  const nettrace::MetadataId created =
      trace.AddKind("Universal.System", "ProcessCreate", 0, "Name", true);
  const nettrace::MetadataId exited =
      trace.AddKind("Universal.System", "ProcessExit", 0, "Code", false);
  const nettrace::ThreadIndex web = trace.AddThread("web", 100, 101);
  const nettrace::ThreadIndex script = trace.AddThread("sh", 500, 500);
  trace.Text(existing, web, 0, u"web");
  trace.Text(existing, script, 0, u"/usr/bin/sh");
  for (std::uint64_t i = 0; i < kTicks; ++i) {
    const std::uint64_t at = i * kTick;
    trace.Number(heartbeat, web, at, static_cast<std::uint32_t>(i));
    if (i % kTicksOfCommand != 0) continue;
    const std::uint64_t pid = 1000 + i;
    const nettrace::ThreadIndex command = trace.AddThread("rm", pid, pid);
    trace.Number(executed, script, at + 1, 0);
    // A new process has the program of the script until it executes the program of the command.
    trace.Text(created, command, at + 2, u"/usr/bin/sh");
    trace.Number(exited, command, at + 1000, 0);
    trace.Text(created, command, at + 1000, u"/usr/bin/rm");
    trace.Number(executed, command, at + 1001, 1);
    trace.Number(exited, command, at + 2'000'000, 0);
  }
  const std::uint64_t end = (kTicks - 1) * kTick;
  trace.Number(exited, script, end + 1, 0);
  trace.Number(heartbeat, web, end + kTick, static_cast<std::uint32_t>(kTicks));
  trace.EndInterval(end + kTick + 1);
  trace.Finish();
}

void WriteCalm(const std::string& path) {
  Shop shop(path, 6);
  for (double at = shop.Wait(50); at < 600 * kSecond; at += shop.Wait(50)) {
    AddRequest(&shop, Shop::kWeb, at, shop.Duration(5 * kMillisecond));
  }
  for (double at = 0; at < 600 * kSecond; at += 100 * kMillisecond) {
    shop.Add(Shop::kHeartbeat, Shop::kWeb, at);
  }
  shop.Finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::cerr << "usage: write_report_stories DIR\n";
    return 2;
  }
  const std::string folder = argv[1];
  WriteBurst(folder + "/burst.nettrace");
  WriteShare(folder + "/share.nettrace", 1);
  WriteShare(folder + "/spread.nettrace", Shop::kNames);
  WriteOutcomes(folder + "/outcomes.nettrace");
  WriteLeak(folder + "/leak.nettrace");
  WriteMillion(folder + "/million.nettrace");
  WriteRestart(folder + "/restart.nettrace");
  WriteLosses(folder + "/losses.nettrace");
  WriteScript(folder + "/script.nettrace");
  WriteCalm(folder + "/calm.nettrace");
  return 0;
}
