// Keeps every n-th item of a sequence. n is the smallest power of 2 with which the kept items do
// not exceed a maximum number and a maximum size.
#ifndef TOOLS_NETTRACE_REPORT_EVEN_SAMPLE_H_
#define TOOLS_NETTRACE_REPORT_EVEN_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tools::report {

template <typename T>
class EvenSample {
 public:
  // Keeps at most `max_count` items, and limits the sum of their sizes, as passed to Add, to
  // `max_size`. A single item is kept even if it is larger than `max_size`.
  EvenSample(std::size_t max_count, std::size_t max_size)
      : max_count_(max_count), max_size_(max_size) {}

  // Counts the next item. Returns whether to pass it to Add.
  bool Next() { return offered_++ % every_ == 0; }
  void Add(T thing, std::size_t size) {
    kept_.emplace_back(std::move(thing), size);
    size_ += size;
    while (kept_.size() > 1 && (kept_.size() > max_count_ || size_ > max_size_)) Halve();
  }

  std::uint64_t offered() const { return offered_; }
  std::uint64_t every() const { return every_; }
  std::size_t count() const { return kept_.size(); }
  template <typename Use>
  void ForEach(const Use& use) const {
    for (const auto& [thing, size] : kept_) use(thing);
  }

 private:
  void Halve() {
    std::size_t to = 0;
    size_ = 0;
    for (std::size_t from = 0; from < kept_.size(); from += 2, ++to) {
      if (from != to) kept_[to] = std::move(kept_[from]);
      size_ += kept_[to].second;
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(to), kept_.end());
    every_ *= 2;
  }

  const std::size_t max_count_;
  const std::size_t max_size_;
  std::vector<std::pair<T, std::size_t>> kept_;
  std::size_t size_ = 0;
  std::uint64_t offered_ = 0;
  std::uint64_t every_ = 1;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_EVEN_SAMPLE_H_
