// A sink of Boost.Log that writes each record as an event with a field for each attribute:
//
//     boost::log::core::get()->add_sink(eh::MakeBoostLogSink("MyCompany_MyService"));
//
// The level is that of the attribute Severity, if its type is boost::log::trivial::severity_level:
// trace and debug become verbose events, info information, warning warning, error error, and fatal
// critical error. BoostLogOptions::level converts other types. log_sets.h describes the events. The
// attributes Message and Channel become the fields `message` and `logger`. File and Function become
// `file` and `function` if they are text, and Line becomes `line` if it is an integer from 0 to
// 2^32 - 1. Other attributes become fields with the name of the attribute, if their type is one of
// these: bool, a character, an integer, float, double, std::string, std::wstring, or
// boost::log::string_literal. BoostLogOptions::add_attribute adds attributes of other types.
//
// The sink has a filter that accepts only records of levels that a collector records. Boost.Log
// does not format a record that no sink accepts.
//
// Needs Boost 1.74 or newer, with exceptions. The library itself does not depend on Boost.
#ifndef EVENTHEADER_BRIDGES_BOOST_LOG_H_
#define EVENTHEADER_BRIDGES_BOOST_LOG_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#if __has_include(<boost/log/core/record_view.hpp>)

#include <algorithm>
#include <boost/log/attributes/attribute_name.hpp>
#include <boost/log/attributes/attribute_value.hpp>
#include <boost/log/attributes/attribute_value_set.hpp>
#include <boost/log/attributes/value_visitation.hpp>
#include <boost/log/core/record_view.hpp>
#include <boost/log/sinks/basic_sink_backend.hpp>
#include <boost/log/sinks/frontend_requirements.hpp>
#include <boost/log/sinks/unlocked_frontend.hpp>
#include <boost/log/trivial.hpp>
#include <boost/log/utility/string_literal.hpp>
#include <boost/mpl/vector.hpp>
#include <boost/smart_ptr/make_shared_object.hpp>
#include <boost/smart_ptr/shared_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "eventheader/bridges/log_sets.h"

namespace eh {

// Returns the level of the attribute Severity; kInformation if a record has no severity of type
// boost::log::trivial::severity_level. Thread-safe. The function is hidden, because its static
// variable would otherwise keep a shared object with a bridge loaded after dlclose().
[[gnu::visibility("hidden")]] inline Level LevelOfTrivialSeverity(
    const boost::log::attribute_value_set& values) {
  static const boost::log::attribute_name name("Severity");
  const auto found = values.find(name);
  if (found == values.end()) return Level::kInformation;
  const auto severity = found->second.extract<boost::log::trivial::severity_level>();
  if (!severity) return Level::kInformation;
  switch (severity.get()) {
    case boost::log::trivial::fatal:
      return Level::kCriticalError;
    case boost::log::trivial::error:
      return Level::kError;
    case boost::log::trivial::warning:
      return Level::kWarning;
    case boost::log::trivial::info:
      return Level::kInformation;
    default:
      return Level::kVerbose;
  }
}

struct BoostLogOptions : LogBridgeOptions {
  // Returns the level of a record. Must be thread-safe. If it throws, the record does not become an
  // event. Must not be null.
  Level (*level)(const boost::log::attribute_value_set& values) = &LevelOfTrivialSeverity;
  // Adds to `event` a field for an attribute whose type the bridge does not support. `name` is
  // valid as the name of the field. Must be thread-safe, and must not log. If it throws, the event
  // is refused and counted as invalid. Null: events do not have these attributes.
  void (*add_attribute)(DynamicEvent& event, std::string_view name,
                        const boost::log::attribute_value& value) = nullptr;
};

// The backend of the sink. Thread-safe without a mutex, so use it with an unlocked frontend, which
// calls it in the thread that logs. MakeBoostLogSink() creates the backend and such a frontend.
class BoostLogBackend
    : public boost::log::sinks::basic_sink_backend<boost::log::sinks::concurrent_feeding> {
 public:
  // Maximum bytes of an attribute's text in an event; longer text is cut after a complete UTF-8
  // character. The wide text of a std::wstring is not cut. An event that is larger than
  // kMaxEventSize is refused, and counted in the provider's too_big.
  static constexpr std::size_t kMaxAttribute = 1024;

  // Registers the event sets of provider `provider`, which is copied; see LogSets.
  explicit BoostLogBackend(std::string_view provider, const BoostLogOptions& options = {})
      : sets_(provider, options), level_(options.level), add_attribute_(options.add_attribute) {}

  // Returns the event sets. Their provider() has the counts of events, the status and Retry().
  LogSets& sets() noexcept { return sets_; }

  // Returns whether a collector records a record with these attributes. For filters.
  bool enabled(const boost::log::attribute_value_set& values) const noexcept {
    if (!sets_.provider().enabled()) return false;
    try {
      return sets_.enabled(level_(values));
    } catch (...) {
      return false;
    }
  }

  // Writes the record if its level is enabled. For frontends.
  void consume(const boost::log::record_view& record) const noexcept {
    try {
      Write(record.attribute_values());
    } catch (...) {
      // BoostLogOptions::level threw, or memory for the name of an attribute is exhausted. The
      // record does not become an event.
    }
  }

 private:
  using Values = boost::log::attribute_value_set;
  using Value = boost::log::attribute_value;
  // Types of attributes that become fields. A boost::mpl::vector has at most 20 elements.
  using Types =
      boost::mpl::vector<bool, char, signed char, unsigned char, wchar_t, short, unsigned short,
                         int, unsigned, long, unsigned long, long long, unsigned long long, float,
                         double, std::string, std::wstring, boost::log::string_literal>;
  using Texts = boost::mpl::vector<std::string, boost::log::string_literal>;
  using Integers = boost::mpl::vector<int, unsigned, long, unsigned long>;

  void Write(const Values& values) const {
    LogLine line{.level = level_(values)};
    if (!sets_.enabled(line.level)) return;
    // The attributes for which LogLine has a member. The bool is true if the type of the value
    // suits that member. Attributes with false are added below as fields, like all others.
    const std::pair<boost::log::attribute_name, bool> own[] = {
        {message_, GetText(values, message_, &line.message)},
        {channel_, GetText(values, channel_, &line.logger)},
        {file_, GetText(values, file_, &line.file)},
        {line_, GetLine(values, &line.line)},
        {function_, GetText(values, function_, &line.function)},
    };
    sets_.Write(line, [&](DynamicEvent& event) noexcept {
      try {
        for (const auto& [name, value] : values) {
          if (std::find(std::begin(own), std::end(own), std::pair(name, true)) == std::end(own)) {
            Add(name.string(), value, event);
          }
        }
        return true;
      } catch (...) {
        return false;
      }
    });
  }

  // If the attribute is text, stores a view of the text and returns true. The view is valid as long
  // as the record.
  static bool GetText(const Values& values, const boost::log::attribute_name& name,
                      std::string_view* text) {
    const auto found = values.find(name);
    if (found == values.end()) return false;
    return bool{found->second.visit<Texts>([text](const auto& known) {
      *text = std::string_view(known.data() != nullptr ? known.data() : "", known.size());
    })};
  }
  // If the attribute is an integer that fits, stores it and returns true.
  bool GetLine(const Values& values, std::uint32_t* line) const {
    const auto found = values.find(line_);
    if (found == values.end()) return false;
    bool fits = false;
    found->second.visit<Integers>([line, &fits](auto known) {
      fits = std::in_range<std::uint32_t>(known);
      if (fits) *line = static_cast<std::uint32_t>(known);
    });
    return fits;
  }

  void Add(const std::string& attribute, const Value& value, DynamicEvent& event) const {
    const LogName name(attribute.empty() ? std::string_view("attribute") : attribute);
    const bool is_known = bool{value.visit<Types>([&](const auto& known) {
      using T = std::remove_cvref_t<decltype(known)>;
      if constexpr (std::is_same_v<T, std::string> ||
                    std::is_same_v<T, boost::log::string_literal>) {
        const std::string_view text(known.data() != nullptr ? known.data() : "", known.size());
        event.AddField(name.view(), Truncate<kMaxAttribute>(text));
      } else {
        event.AddField(name.view(), known);
      }
    })};
    if (!is_known && add_attribute_ != nullptr) add_attribute_(event, name.view(), value);
  }

  LogSets sets_;
  Level (*level_)(const Values&);
  void (*add_attribute_)(DynamicEvent&, std::string_view, const Value&);
  const boost::log::attribute_name message_{"Message"};
  const boost::log::attribute_name channel_{"Channel"};
  const boost::log::attribute_name file_{"File"};
  const boost::log::attribute_name line_{"Line"};
  const boost::log::attribute_name function_{"Function"};
};

using BoostLogSink = boost::log::sinks::unlocked_sink<BoostLogBackend>;

// Returns a sink with the filter that the comment of this file describes. Add it to the core, and
// remove it before the library of Boost.Log is unloaded. `sink->locked_backend()` returns the
// backend. Throws if memory is exhausted.
inline boost::shared_ptr<BoostLogSink> MakeBoostLogSink(std::string_view provider,
                                                        const BoostLogOptions& options = {}) {
  const auto backend = boost::make_shared<BoostLogBackend>(provider, options);
  auto sink = boost::make_shared<BoostLogSink>(backend);
  // The sink owns both the filter and the backend, so the filter may keep a plain pointer.
  sink->set_filter([wanted = backend.get()](const boost::log::attribute_value_set& values) {
    return wanted->enabled(values);
  });
  return sink;
}

}  // namespace eh

#else
#error "eventheader/bridges/boost_log.h needs the headers of Boost.Log (Debian: libboost-log-dev)"
#endif

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_BRIDGES_BOOST_LOG_H_
