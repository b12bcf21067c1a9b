#include "tools/nettrace/export/otlp/span_window.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tools::otlp {

std::vector<OpenSpan> SpanWindow::Add(OpenSpan span) {
  std::vector<OpenSpan> removed;
  bytes_ += BytesOf(span);
  by_age_.push_back(std::move(span));
  by_id_[by_age_.back().activity].push_back(std::prev(by_age_.end()));
  while (by_age_.size() > kMaxOpen || bytes_ > kMaxBytes) {
    removed.push_back(Remove(by_age_.begin()));
  }
  return removed;
}

std::optional<OpenSpan> SpanWindow::Take(const nettrace::Guid& activity,
                                         const std::string& provider) {
  // Searches only the latest kMaxSearched spans with this id. This is sufficient, because providers
  // hardly ever share an activity id.
  constexpr std::ptrdiff_t kMaxSearched = 16;
  const auto spans = by_id_.find(activity);
  if (spans == by_id_.end()) return std::nullopt;
  const auto end = spans->second.rbegin() +
                   std::min(kMaxSearched, static_cast<std::ptrdiff_t>(spans->second.size()));
  const auto found = std::find_if(spans->second.rbegin(), end,
                                  [&](const auto& span) { return span->provider == provider; });
  if (found == end) return std::nullopt;
  return Remove(*found);
}

std::optional<OpenSpan> SpanWindow::TakeOldest() {
  if (by_age_.empty()) return std::nullopt;
  return Remove(by_age_.begin());
}

const OpenSpan* SpanWindow::Find(const nettrace::Guid& activity) const {
  const auto spans = by_id_.find(activity);
  return spans == by_id_.end() ? nullptr : &*spans->second.back();
}

std::size_t SpanWindow::BytesOf(const OpenSpan& span) {
  constexpr std::size_t kFixed = 256;  // bytes of the entries of both containers
  std::size_t bytes = kFixed + sizeof span + span.head.name.size() + span.provider.size() +
                      span.resource.size() + span.scope.size() +
                      span.head.links.size() * sizeof(SpanLink);
  for (const EncodedAttribute& attribute : span.attributes) {
    bytes += sizeof attribute + attribute.key.size() + attribute.bytes.size();
  }
  return bytes;
}

OpenSpan SpanWindow::Remove(Spans::iterator span) {
  const auto spans = by_id_.find(span->activity);
  std::deque<Spans::iterator>& same = spans->second;
  if (same.front() == span) {
    same.pop_front();
  } else {
    // Searches from the end, because the span is usually near it.
    same.erase(std::next(std::find(same.rbegin(), same.rend(), span)).base());
  }
  if (same.empty()) by_id_.erase(spans);
  OpenSpan removed = std::move(*span);
  bytes_ -= BytesOf(removed);
  by_age_.erase(span);
  return removed;
}

std::string SpanName(std::string_view event) {
  std::string_view name = event;
  for (const std::string_view suffix : {"Start", "start", "Begin", "begin"}) {
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    while (!name.empty() &&
           std::string_view("/._- :").find(name.back()) != std::string_view::npos) {
      name.remove_suffix(1);
    }
    break;
  }
  return std::string(name.empty() ? event : name);
}

}  // namespace tools::otlp
