//===- Column.h - the samples of one graph input --------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/TokenStream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ds::runtime {

/// Where the samples of one graph input come from. Reading allocates nothing and may go on from several threads.
class Column {
public:
  virtual ~Column() = default;
  virtual uint64_t samples() const = 0;
  /// Writes one sample, in the input's dtype, to `target`.
  virtual Status read(uint64_t sample, std::byte *target) const noexcept = 0;
};

/// The tensors of the input's name in several files, one after another. Throws ds::Error naming the file and the tensor
/// when one is missing or its dtype or shape does not fit.
std::unique_ptr<Column> makeTensorColumn(const InputSpec &input, const std::vector<SafetensorsFile> &files);

/// Windows of the input's length in a token stream: sample i begins at token i * length, one later for next tokens.
std::unique_ptr<Column> makeTokenColumn(const InputSpec &input, const TokenStream &stream);

} // namespace ds::runtime
