// Writes traces for the tests of `nettrace report`. Usage: write_report_traces DIR
//   shop.nettrace     four processes, activities with start and stop, losses in the middle
//   hostile.nettrace  names that would be HTML, scripts or control characters
//   far.nettrace      two events that are more than 2^53 ticks apart
//   large.nettrace    60,000 events, more than a page can list, and one with too large fields
//   tree.nettrace     200 requests with activities inside, in three processes; one is slow
//   mixed.nettrace    100,000 events, with rare kinds, errors, slow activities and losses
//   hosts/*.nettrace  requests of one host, and their queries on another host with the same pids;
//                     and a file of an earlier boot of the first host
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/programs/nettrace/report_trace.h"

namespace {

using report_traces::IdOf;
using report_traces::kMicrosecond;
using report_traces::kStartOpcode;
using report_traces::kStopOpcode;
using report_traces::Trace;

// Writes 200 requests, one every 5 ms. Request i takes i + 1 microseconds; the last one does not
// end. Every third one is related to the one before it.
void WriteShop(const std::string& path) {
  Trace trace(path, {{"Host", "shop.example"}, {"HardwareThreadCount", "2"}});
  const auto process = trace.AddKind("Universal.System", "ExistingProcess", 0, "Name", true);
  const auto begin = trace.AddKind("Shop.Web", "Request", kStartOpcode, "Order", false);
  const auto end = trace.AddKind("Shop.Web", "RequestDone", kStopOpcode, "Status", false);
  const auto query = trace.AddKind("Shop.Database", "Query", 0, "Rows", false);
  const auto bill = trace.AddKind("Shop.Billing", "Billed", 0, "Text", true);
  const std::vector<std::pair<const char16_t*, std::vector<const char*>>> processes = {
      {u"/usr/bin/web", {"main", "worker 1", "worker 2"}},
      {u"/usr/bin/database", {"main", "writer"}},
      {u"/usr/bin/billing", {"main"}},
      {u"/usr/bin/größe", {"main"}}};
  std::vector<nettrace::ThreadIndex> threads;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const std::uint64_t pid = 1000 * (i + 1);
    for (std::size_t j = 0; j < processes[i].second.size(); ++j) {
      threads.push_back(trace.AddThread(processes[i].second[j], pid, pid + j));
      if (j == 0) trace.Text(process, threads.back(), 0, processes[i].first);
    }
  }
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t at = i * 5000 * kMicrosecond;
    const nettrace::Guid activity = IdOf(static_cast<std::uint8_t>(i % 100 + 1));
    const nettrace::ThreadIndex worker = threads[1 + i % 2];
    std::optional<nettrace::Guid> related;
    if (i % 3 == 2) related = IdOf(static_cast<std::uint8_t>((i - 1) % 100 + 1));
    trace.Number(begin, worker, at, i, activity, related);
    trace.Number(query, threads[3 + i % 2], at + 1 + i * kMicrosecond / 2, i * 7);
    if (i % 10 == 0) trace.Text(bill, threads[5], at + 2 + i * kMicrosecond / 2, u"order ✓ paid");
    if (i % 50 == 0) trace.Text(bill, threads[6], at + 3 + i * kMicrosecond / 2, u"report");
    if (i + 1 < 200) trace.Number(end, worker, at + (i + 1) * kMicrosecond, 200, activity);
    if (i == 80) trace.Lose(0, 40);
    if (i == 120) trace.Lose(1, 5);
    if (i % 40 == 39) trace.EndInterval(at + 4000 * kMicrosecond);
  }
  trace.Finish();
}

constexpr char kHtml[] = "</script><img src=x onerror=\"document.title='broken'\"><!--<script>";

void WriteHostile(const std::string& path) {
  Trace trace(path, {{kHtml, "'\"><b>&amp;"}, {"control", "\x1b[31m\u202e"}});
  const auto process = trace.AddKind("Universal.System", "ExistingProcess", 0, "Name", true);
  const auto html = trace.AddKind(kHtml, kHtml, 0, kHtml, true);
  const auto begin = trace.AddKind("]]></style><style>*{display:none}", "{{data}}", kStartOpcode,
                                   "__proto__", false);
  const auto end = trace.AddKind("\x1b[31m", "\u2028\u202e", kStopOpcode, "constructor", false);
  const auto broken = trace.AddKind("\xff\xfe", std::string(5000, 'x'), 0, "a b", false);
  const nettrace::ThreadIndex thread = trace.AddThread(kHtml, 7, 8);
  trace.Text(process, thread, 0, u"<script>document.title='broken'</script>");
  trace.Text(html, thread, 1, u"</script><script>document.title='broken'</script>\u2028\u2029");
  trace.Number(begin, thread, 2, 1, IdOf(1));
  trace.Number(end, thread, 3, 1, IdOf(1));
  trace.Number(broken, thread, 4, 1);
  trace.Lose(0, 3);
  trace.EndInterval(5);
  trace.Finish();
}

void WriteFar(const std::string& path) {
  Trace trace(path);
  const auto tick = trace.AddKind("Far", "Tick", 0, "n", false);
  const nettrace::ThreadIndex thread = trace.AddThread("main", 1, 1);
  trace.Number(tick, thread, 0, 1);
  trace.Number(tick, thread, std::uint64_t{1} << 60, 2);
  trace.EndInterval(std::uint64_t{1} << 60);
  trace.Finish();
}

void WriteLarge(const std::string& path) {
  Trace trace(path);
  const auto tick = trace.AddKind("Large", "Tick", 0, "n", false);
  const auto text = trace.AddKind("Large", "Text", 0, "t", true);
  const nettrace::ThreadIndex thread = trace.AddThread("main", 1, 1);
  // Writes the event that is too large first, because the report's selection of events of a kind
  // always contains the first one.
  trace.Text(text, thread, 0, std::u16string(20000, u'<'));
  for (std::uint32_t i = 1; i < 60000; ++i) {
    trace.Number(tick, thread, i * 10 * kMicrosecond, i);
    if (i % 10000 == 0) trace.EndInterval(i * 10 * kMicrosecond);
  }
  trace.EndInterval(600000 * kMicrosecond);
  trace.Finish();
}

// Writes 100,000 ticks, one each 100 us, and between them: 20 rare kinds with up to 20 events each,
// 1500 errors, 5 critical errors, 600 calls of 1 ms on another thread, and two that take 40 ms.
void WriteMixed(const std::string& path) {
  Trace trace(path);
  const auto tick = trace.AddKind("Mixed", "Tick", 0, "n", false, 5);
  const auto begin = trace.AddKind("Mixed", "Call", kStartOpcode, "n", false);
  const auto step = trace.AddKind("Mixed", "Step", 0, "n", false);
  const auto end = trace.AddKind("Mixed", "CallDone", kStopOpcode, "n", false);
  const auto failed = trace.AddKind("Mixed", "Failed", 0, "n", false, 2);
  const auto fatal = trace.AddKind("Mixed", "Fatal", 0, "n", false, 1);
  std::vector<nettrace::MetadataId> rare;
  for (int i = 1; i <= 20; ++i) {
    rare.push_back(trace.AddKind("Mixed.Rare", "Rare" + std::to_string(i), 0, "n", false));
  }
  const nettrace::ThreadIndex ticker = trace.AddThread("ticker", 1, 1);
  const nettrace::ThreadIndex worker = trace.AddThread("worker", 1, 2);
  std::uint32_t calls = 0;
  std::uint64_t call_ends = 0;
  std::optional<nettrace::Guid> activity;
  for (std::uint32_t i = 0; i < 100000; ++i) {
    const std::uint64_t at = i * 100 * kMicrosecond;
    trace.Number(tick, ticker, at, i);
    if (i % 5000 < 20 && i / 5000 < i % 5000 + 1) trace.Number(rare[i % 5000], ticker, at + 1, i);
    if (i >= 30000 && i < 31500) trace.Number(failed, worker, at + 2, i);
    if (i % 20000 == 500) trace.Number(fatal, worker, at + 3, i);
    if (activity) {
      // Every second step has no activity id, so only its thread shows that it belongs to the call.
      trace.Number(step, worker, at + 4, i, i % 2 == 0 ? activity : std::nullopt);
      if (at >= call_ends) {
        trace.Number(end, worker, at + 5, i, activity);
        activity.reset();
      }
    } else if (i % 166 == 0) {
      activity = IdOf(static_cast<std::uint8_t>(calls % 200 + 1));
      call_ends = at + (calls % 250 == 100 ? 40000 : 1000) * kMicrosecond;
      trace.Number(begin, worker, at + 4, calls++, activity);
    }
    if (i == 70000) trace.Lose(1, 500);
    if (i % 10000 == 9999) trace.EndInterval(at + 50 * kMicrosecond);
  }
  trace.Finish();
}

// Writes 200 requests, one every 10 ms. Each has a query in another process, and then renders, with
// a fetch in a third process. The query of request 150 takes 6 ms instead of 300 us.
void WriteTree(const std::string& path) {
  Trace trace(path);
  const auto process = trace.AddKind("Universal.System", "ExistingProcess", 0, "Name", true);
  std::vector<nettrace::MetadataId> kinds;
  for (const auto& [provider, name] :
       std::vector<std::pair<const char*, const char*>>{{"Shop.Web", "Request"},
                                                        {"Shop.Database", "Query"},
                                                        {"Shop.Web", "Render"},
                                                        {"Shop.Cache", "Fetch"}}) {
    kinds.push_back(trace.AddKind(provider, name, kStartOpcode, "n", false));
    kinds.push_back(trace.AddKind(provider, std::string(name) + "Done", kStopOpcode, "n", false));
  }
  const auto note = trace.AddKind("Shop.Web", "Note", 0, "n", false);
  const nettrace::ThreadIndex web = trace.AddThread("web", 100, 101);
  const nettrace::ThreadIndex database = trace.AddThread("database", 200, 201);
  const nettrace::ThreadIndex cache = trace.AddThread("cache", 300, 301);
  trace.Text(process, web, 0, u"web");
  trace.Text(process, database, 0, u"database");
  trace.Text(process, cache, 0, u"cache");
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t at = i * 10000 * kMicrosecond;
    const std::uint64_t query = (i == 150 ? 6000 : 300) * kMicrosecond;
    std::vector<nettrace::Guid> ids(4, IdOf(static_cast<std::uint8_t>(i + 1)));
    for (std::size_t j = 0; j < ids.size(); ++j) ids[j][0] = static_cast<std::byte>(j);
    const auto us = [at](std::uint64_t microseconds) { return at + microseconds * kMicrosecond; };
    trace.Number(kinds[0], web, at, i, ids[0]);
    trace.Number(note, web, us(50), i);
    trace.Number(kinds[2], database, us(100), i, ids[1], ids[0]);
    trace.Number(note, database, us(200), i);
    trace.Number(kinds[3], database, us(100) + query, i, ids[1]);
    trace.Number(kinds[4], web, us(200) + query, i, ids[2], ids[0]);
    trace.Number(kinds[6], cache, us(300) + query, i, ids[3], ids[2]);
    trace.Number(kinds[7], cache, us(500) + query, i, ids[3]);
    trace.Number(kinds[5], web, us(700) + query, i, ids[2]);
    trace.Number(kinds[1], web, us(800) + query, i, ids[0]);
    trace.EndInterval(us(9000));
  }
  trace.Finish();
}

// Writes 200 requests on host a, each with a query on host b. The processes of both have pid 100.
void WriteHosts(const std::string& folder) {
  std::filesystem::create_directory(folder);
  const auto open = [&folder](const char* file, const char* host, const char* boot) {
    return Trace(folder + "/" + file, {{"HostName", host}, {"BootId", boot}});
  };
  Trace first = open("a.nettrace", "a", "11111111-0000-4000-8000-000000000001");
  Trace second = open("b.nettrace", "b", "22222222-0000-4000-8000-000000000002");
  Trace before = open("before.nettrace", "a", "33333333-0000-4000-8000-000000000003");
  const auto begin = [](Trace* trace, const char* provider, const char* name,
                        const char16_t* process) {
    const auto existing = trace->AddKind("Universal.System", "ExistingProcess", 0, "Name", true);
    const nettrace::ThreadIndex thread = trace->AddThread("main", 100, 101);
    trace->Text(existing, thread, 0, process);
    return std::tuple(
        thread, trace->AddKind(provider, name, kStartOpcode, "n", false),
        trace->AddKind(provider, std::string(name) + "Done", kStopOpcode, "n", false));
  };
  const auto [web, request, request_done] = begin(&first, "Shop.Web", "Request", u"web");
  const auto [database, query, query_done] = begin(&second, "Shop.Database", "Query", u"database");
  const auto [old, old_request, old_done] = begin(&before, "Shop.Web", "Request", u"old web");
  before.Number(old_request, old, 1, 0, IdOf(255));
  before.Number(old_done, old, 2, 0, IdOf(255));
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t at = i * 10000 * kMicrosecond;
    const std::uint64_t length = (i == 150 ? 6000 : 300) * kMicrosecond;
    const nettrace::Guid outer = IdOf(static_cast<std::uint8_t>(i + 1));
    nettrace::Guid inner = outer;
    inner[0] = std::byte{0};
    first.Number(request, web, at + 10, i, outer);
    second.Number(query, database, at + 20, i, inner, outer);
    second.Number(query_done, database, at + length, i, inner);
    first.Number(request_done, web, at + length + 100 * kMicrosecond, i, outer);
    if (i == 100) first.Lose(0, 3);
    if (i == 120) second.Lose(0, 4);
  }
  for (Trace* const trace : {&first, &second, &before}) {
    trace->EndInterval(2000000 * kMicrosecond);
    trace->Finish();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::cerr << "usage: write_report_traces DIR\n";
    return 2;
  }
  const std::string folder = argv[1];
  WriteShop(folder + "/shop.nettrace");
  WriteHostile(folder + "/hostile.nettrace");
  WriteFar(folder + "/far.nettrace");
  WriteLarge(folder + "/large.nettrace");
  WriteTree(folder + "/tree.nettrace");
  WriteMixed(folder + "/mixed.nettrace");
  WriteHosts(folder + "/hosts");
  return 0;
}
