#include "tools/nettrace/query/virtual_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tools::query {
namespace {

// SQLite passes pointers to `base`, which must be the first member.
struct VirtualTable {
  sqlite3_vtab base;
  Module module;
};
struct VirtualCursor {
  sqlite3_vtab_cursor base;
  std::unique_ptr<Cursor> cursor;
};

VirtualTable* TableOf(sqlite3_vtab* base) { return reinterpret_cast<VirtualTable*>(base); }
VirtualCursor* CursorOf(sqlite3_vtab_cursor* base) {
  return reinterpret_cast<VirtualCursor*>(base);
}

// Calls `function`, which returns a result code. SQLite is written in C, so no exception may pass
// through it.
template <typename Function>
int WithoutExceptions(const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

// Returns a result code, and stores the message of an error where SQLite finds it.
int ResultOf(const absl::Status& status, sqlite3_vtab* table) {
  if (status.ok()) return SQLITE_OK;
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("%s", std::string(status.message()).c_str());
  return SQLITE_ERROR;
}

int Connect(sqlite3* database, void* data, int /*words*/, const char* const* /*word*/,
            sqlite3_vtab** table, char** /*error*/) {
  return WithoutExceptions([&] {
    const Module& module = *static_cast<Module*>(data);
    std::string sql;
    for (const ColumnFacts& column : module.table->columns) {
      absl::StrAppend(&sql, sql.empty() ? "CREATE TABLE rows(" : ", ", column.declaration);
    }
    const int result = sqlite3_declare_vtab(database, absl::StrCat(sql, ")").c_str());
    if (result != SQLITE_OK) return result;
    *table = &(new VirtualTable{{}, module})->base;
    return SQLITE_OK;
  });
}

int Disconnect(sqlite3_vtab* table) {
  delete TableOf(table);
  return SQLITE_OK;
}

// A condition in the plan of a query. A plan is a text with three characters for each condition.
struct Condition {
  Property property;
  int op;        // SQLITE_INDEX_CONSTRAINT_*
  bool is_list;  // the value is the list of an IN operator
};
constexpr std::size_t kConditionSize = 3;

char OpLetter(int op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_GT:
      return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
      return 'G';
    case SQLITE_INDEX_CONSTRAINT_LT:
      return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
      return 'L';
    default:
      return '=';
  }
}

void AppendTo(std::string* plan, const Condition& condition) {
  plan->push_back(static_cast<char>('a' + static_cast<int>(condition.property)));
  plan->push_back(OpLetter(condition.op));
  plan->push_back(condition.is_list ? 'l' : 'v');
}

Condition ConditionAt(std::string_view plan) {
  Condition condition = {static_cast<Property>(plan[0] - 'a'), SQLITE_INDEX_CONSTRAINT_EQ,
                         plan[2] == 'l'};
  for (const int op : {SQLITE_INDEX_CONSTRAINT_GT, SQLITE_INDEX_CONSTRAINT_GE,
                       SQLITE_INDEX_CONSTRAINT_LT, SQLITE_INDEX_CONSTRAINT_LE}) {
    if (OpLetter(op) == plan[1]) condition.op = op;
  }
  return condition;
}

bool IsText(Property property) {
  return property == Property::kProvider || property == Property::kName;
}

// Returns whether the reader can check this comparison with a column of this property.
bool CanCheck(Property property, int op) {
  const bool is_equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
  const bool is_upper = op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
  const bool is_lower = op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE;
  switch (property) {
    case Property::kOther:
      return false;
    case Property::kTime:
      return is_equal || is_upper || is_lower;
    case Property::kLevel:
      return is_equal || is_upper;
    default:
      return is_equal;
  }
}

// Selects the conditions that the reader checks, and estimates the cost.
class Planner {
 public:
  Planner(const Table& table, sqlite3_index_info* info) : table_(table), info_(*info) {}

  int Plan() {
    for (int i = 0; i < info_.nConstraint; ++i) AddCondition(i);
    // Each reading of the input costs the same, unless the cursor can continue at its current
    // event.
    const bool seeks = has_number_ && table_.is_in_event_order;
    info_.estimatedCost = seeks ? 10 : kRows;
    info_.estimatedRows = seeks ? 1 : static_cast<sqlite3_int64>(std::max(rows_, 1.0));
    info_.orderByConsumed = table_.is_in_event_order && IsEventOrder() ? 1 : 0;
    info_.idxStr = sqlite3_mprintf("%s", plan_.c_str());
    info_.needToFreeIdxStr = 1;
    return info_.idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
  }

 private:
  static constexpr double kRows = 1e6;  // assumed number of rows of a table

  void AddCondition(int index) {
    const auto& constraint = info_.aConstraint[index];
    if (constraint.usable == 0 || constraint.iColumn < 0) return;
    const Property property = table_.columns[static_cast<std::size_t>(constraint.iColumn)].property;
    if (!CanCheck(property, constraint.op)) return;
    // The reader compares bytes. With a collation other than BINARY, texts with different bytes may
    // be equal, so only SQLite checks such conditions.
    if (IsText(property) && std::strcmp(sqlite3_vtab_collation(&info_, index), "BINARY") != 0) {
      return;
    }
    // If the cursor takes a list, SQLite starts it once with the whole list. Otherwise, SQLite
    // starts it for each value, in ascending order.
    const bool takes_list =
        IsText(property) || property == Property::kPid || property == Property::kTid;
    const bool is_list =
        constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && sqlite3_vtab_in(&info_, index, -1) != 0;
    if (is_list && !takes_list && property != Property::kNumber) return;
    if (is_list && takes_list) sqlite3_vtab_in(&info_, index, 1);
    AppendTo(&plan_, {property, constraint.op, is_list && takes_list});
    info_.aConstraintUsage[index].argvIndex = static_cast<int>(plan_.size() / kConditionSize);
    has_number_ = has_number_ || property == Property::kNumber;
    rows_ /= constraint.op == SQLITE_INDEX_CONSTRAINT_EQ ? 10 : 2;
  }

  // Returns whether the query requests its rows in the order of the events.
  bool IsEventOrder() const {
    if (info_.nOrderBy != 1 || info_.aOrderBy[0].desc != 0 || info_.aOrderBy[0].iColumn < 0) {
      return false;
    }
    const Property property =
        table_.columns[static_cast<std::size_t>(info_.aOrderBy[0].iColumn)].property;
    return property == Property::kNumber || property == Property::kTime;
  }

  const Table& table_;
  sqlite3_index_info& info_;
  std::string plan_;
  bool has_number_ = false;
  double rows_ = kRows;
};

int BestIndex(sqlite3_vtab* table, sqlite3_index_info* info) {
  return WithoutExceptions([&] { return Planner(*TableOf(table)->module.table, info).Plan(); });
}

int Open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
  return WithoutExceptions([&] {
    const Module& module = TableOf(table)->module;
    *cursor = &(new VirtualCursor{{}, module.table->open(module.inputs)})->base;
    return SQLITE_OK;
  });
}

int Close(sqlite3_vtab_cursor* cursor) {
  delete CursorOf(cursor);
  return SQLITE_OK;
}

// Calls `use` with each value of a condition: with the values of a list, or with the single value.
// Stops when `use` returns false.
template <typename Use>
void ForEachValue(sqlite3_value* value, bool is_list, const Use& use) {
  if (!is_list) {
    use(value);
    return;
  }
  // SQLite uses one object for all values of a list, one after the other.
  sqlite3_value* each = nullptr;
  for (int result = sqlite3_vtab_in_first(value, &each); result == SQLITE_OK && each != nullptr;
       result = sqlite3_vtab_in_next(value, &each)) {
    if (!use(each)) return;
  }
}

// Collects the values of conditions.
class ConditionReader {
 public:
  void Add(const Condition& condition, sqlite3_value* value) {
    trace::EventFilter& filter = conditions_.filter;
    switch (condition.property) {
      case Property::kProvider:
        return AddTexts(condition, value, &filter.providers);
      case Property::kName:
        return AddTexts(condition, value, &filter.events);
      case Property::kPid:
        return AddIds(condition, value, &filter.pids);
      case Property::kTid:
        return AddIds(condition, value, &filter.tids);
      default:
        break;
    }
    // Only SQLite checks a condition with a value of another type.
    if (sqlite3_value_type(value) == SQLITE_INTEGER) {
      AddInteger(condition, sqlite3_value_int64(value));
    }
  }
  Conditions Take() { return std::move(conditions_); }

 private:
  // Uses only the first condition on each property. With the values of a second one, the filter
  // would accept events that meet only one condition.
  void AddTexts(const Condition& condition, sqlite3_value* value, std::vector<std::string>* texts) {
    if (!texts->empty()) return;
    bool is_text = true;
    ForEachValue(value, condition.is_list, [&](sqlite3_value* each) {
      const int type = sqlite3_value_type(each);
      // SQLite converts a number to text before it compares. Only SQLite checks a condition with a
      // number.
      is_text = type != SQLITE_INTEGER && type != SQLITE_FLOAT;
      if (type != SQLITE_TEXT) return is_text;
      const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(each));
      if (text == nullptr) throw std::bad_alloc();
      texts->emplace_back(text, static_cast<std::size_t>(sqlite3_value_bytes(each)));
      return true;
    });
    if (!is_text) return texts->clear();
    if (texts->empty()) conditions_.is_never_met = true;
  }
  void AddIds(const Condition& condition, sqlite3_value* value, std::vector<std::uint64_t>* ids) {
    if (!ids->empty()) return;
    bool is_integer = true;
    ForEachValue(value, condition.is_list, [&](sqlite3_value* each) {
      const int type = sqlite3_value_type(each);
      // SQLite may convert texts and reals before it compares them, so only SQLite checks a
      // condition with them.
      is_integer = type == SQLITE_INTEGER || type == SQLITE_NULL;
      if (type == SQLITE_INTEGER) {
        ids->push_back(static_cast<std::uint64_t>(sqlite3_value_int64(each)));
      }
      return is_integer;
    });
    if (!is_integer) return ids->clear();
    if (ids->empty()) conditions_.is_never_met = true;
  }
  void AddInteger(const Condition& condition, std::int64_t value) {
    if (condition.property == Property::kNumber) {
      if (value < 1) conditions_.is_never_met = true;
      conditions_.number = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1));
    } else if (condition.property == Property::kLevel) {
      AddLevel(condition.op == SQLITE_INDEX_CONSTRAINT_LT && value > 0 ? value - 1 : value);
    } else {
      AddTime(condition.op, absl::FromUnixNanos(value));
    }
  }
  void AddLevel(std::int64_t most) {
    if (most < 0) conditions_.is_never_met = true;
    const auto level = static_cast<unsigned>(std::clamp<std::int64_t>(most, 0, 255));
    conditions_.filter.level = std::min(conditions_.filter.level.value_or(255), level);
  }
  void AddTime(int op, absl::Time time) {
    trace::EventFilter& filter = conditions_.filter;
    const absl::Time after = time + absl::Nanoseconds(1);
    const bool is_equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
    if (is_equal || op == SQLITE_INDEX_CONSTRAINT_GE || op == SQLITE_INDEX_CONSTRAINT_GT) {
      const absl::Time from = op == SQLITE_INDEX_CONSTRAINT_GT ? after : time;
      filter.from = std::max(filter.from.value_or(from), from);
    }
    if (is_equal || op == SQLITE_INDEX_CONSTRAINT_LE || op == SQLITE_INDEX_CONSTRAINT_LT) {
      const absl::Time to = op == SQLITE_INDEX_CONSTRAINT_LT ? time : after;
      filter.to = std::min(filter.to.value_or(to), to);
    }
  }

  Conditions conditions_;
};

int Filter(sqlite3_vtab_cursor* cursor, int /*number*/, const char* plan, int count,
           sqlite3_value** values) {
  return WithoutExceptions([&] {
    VirtualCursor* const virtual_cursor = CursorOf(cursor);
    ConditionReader conditions;
    for (int i = 0; i < count; ++i) {
      conditions.Add(ConditionAt(plan + static_cast<std::size_t>(i) * kConditionSize), values[i]);
    }
    return ResultOf(virtual_cursor->cursor->Start(conditions.Take()), cursor->pVtab);
  });
}

int NextRow(sqlite3_vtab_cursor* cursor) {
  return WithoutExceptions(
      [&] { return ResultOf(CursorOf(cursor)->cursor->Next(), cursor->pVtab); });
}

int IsAtEnd(sqlite3_vtab_cursor* cursor) { return CursorOf(cursor)->cursor->is_at_end() ? 1 : 0; }

int PutColumn(sqlite3_vtab_cursor* cursor, sqlite3_context* to, int column) {
  return WithoutExceptions([&] {
    CursorOf(cursor)->cursor->Put(column, to);
    return SQLITE_OK;
  });
}

int RowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* row) {
  *row = CursorOf(cursor)->cursor->row_id();
  return SQLITE_OK;
}

sqlite3_module MakeFunctions() {
  sqlite3_module functions = {};
  functions.iVersion = 1;
  // Without xCreate, the table exists in each database and needs no statement to create it.
  functions.xConnect = Connect;
  functions.xBestIndex = BestIndex;
  functions.xDisconnect = Disconnect;
  functions.xOpen = Open;
  functions.xClose = Close;
  functions.xFilter = Filter;
  functions.xNext = NextRow;
  functions.xEof = IsAtEnd;
  functions.xColumn = PutColumn;
  functions.xRowid = RowId;
  return functions;
}

}  // namespace

int AddModule(sqlite3* database, Module* module) {
  static const sqlite3_module kFunctions = MakeFunctions();
  return sqlite3_create_module_v2(database, module->table->name, &kFunctions, module, nullptr);
}

}  // namespace tools::query
