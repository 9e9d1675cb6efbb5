#include "db/version.h"

namespace leveldb {

class Snapshot;

// Reads a table.
class TableReader : public Iterator {
 public:
  explicit TableReader(const Options& options);
  bool Valid() const override { return current_ != nullptr; }
  void Seek(const Slice& target);
};

void TableReader::Seek(const Slice& target) {
  Cleanup();
  versions_->current()->Get(target);
  auto* made = new Snapshot(target);
  Status::OK();
}

template <typename T>
T Clamp(T value) { return std::min<T>(value, T()); }

enum class Mode { kRead };
using Handle = std::unique_ptr<TableReader>;
}
