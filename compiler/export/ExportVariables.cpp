//===- ExportVariables.cpp - variables, their sources, weight files --------===//
#include "compiler/export/Exporter.h"
#include "compiler/export/Fields.h"

#include "core/Crc32c.h"
#include "core/Error.h"
#include "core/Files.h"

#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/types.h>
#include <unistd.h>

using namespace mlir;
using namespace ds;
using namespace ds::exporting;
using plan::proto::Variable;

static Variable::Kind kindOf(train::VariableKind kind) {
  switch (kind) {
  case train::VariableKind::Parameter:
    return Variable::PARAMETER;
  case train::VariableKind::Buffer:
    return Variable::BUFFER;
  case train::VariableKind::Optimizer:
  case train::VariableKind::Metric:
    return Variable::OPTIMIZER;
  case train::VariableKind::Gradient:
    return Variable::GRADIENT;
  case train::VariableKind::Constant:
    return Variable::CONSTANT;
  }
  return Variable::KIND_UNSPECIFIED;
}

/// Places one more axis among those that a placement names, which ascend.
plan::proto::AxisPlacement &Exporter::addAxis(int axis, plan::proto::Placement &placement) {
  int index = placement.axes_size();
  placement.add_axes()->set_axis(axis);
  for (; index > 0 && int(placement.axes(index - 1).axis()) > axis; --index)
    placement.mutable_axes()->SwapElements(index - 1, index);
  return *placement.mutable_axes(index);
}

/// Says which part of its whole each rank has of a variable. Nothing is cut along an axis of size 1.
void Exporter::exportSharding(train::VariableOp variable, Variable &message) {
  auto sharding = variable->getAttrOfType<dist::ShardingAttr>(dist::shardingAttribute);
  if (!sharding)
    return;
  SmallVector<int64_t> left(variable.getWholeType().getShape()); // sizes of a piece, as more axes cut it
  for (const dist::AxisPlacement &placement : sharding.getPlacements()) {
    const int64_t axis = *dist::axisIndex(dist::meshOf(module_), placement.axis);
    const int64_t ranks = plan_.world().axes(int(axis)).size();
    if (ranks == 1)
      continue;
    plan::proto::Shard &shard = *addAxis(int(axis), *message.mutable_placement()).mutable_shard();
    shard.set_dimension(*placement.dim);
    shard.set_repeat(1);
    const int64_t run = left[size_t(*placement.dim)] / placement.runs;
    for (int64_t i = 0; i < placement.runs; ++i) {
      plan::proto::Block &block = *shard.add_blocks();
      block.set_offset(i * run);
      block.set_stride(run / ranks);
      block.set_size(run / ranks);
    }
    left[size_t(*placement.dim)] /= ranks;
  }
}

LogicalResult Exporter::exportVariables() {
  SmallVector<std::pair<int, StringAttr>> parameters; // of gradients and state, which may stand before them
  for (auto variable : module_.getOps<train::VariableOp>()) {
    variables_[variable.getSymNameAttr()] = plan_.variables_size();
    Variable &message = *plan_.add_variables();
    message.set_name(variable.getSymName().str());
    exportType(variable.getWholeType(), message);
    exportSharding(variable, message);
    message.set_kind(kindOf(variable.getKind()));
    message.set_trainable(variable.getTrainable());
    message.set_persistent(variable.getPersistent() || variable.getKind() == train::VariableKind::Parameter);
    if (variable.getAliases())
      for (StringRef alias : variable.getAliases()->getAsValueRange<StringAttr>())
        message.add_aliases(alias.str());
    if (variable.getOf())
      parameters.emplace_back(variables_.size() - 1, variable.getOfAttr().getAttr());
    if (variable.getSource() && failed(exportSource(variable, *message.mutable_source())))
      return failure();
    if (!variable.getSource())
      message.mutable_source()->set_fill(0);
  }
  for (auto [variable, parameter] : parameters)
    plan_.mutable_variables(variable)->set_of(variables_.lookup(parameter));
  return success();
}

LogicalResult Exporter::exportSource(train::VariableOp variable, plan::proto::Source &message) {
  return TypeSwitch<Attribute, LogicalResult>(*variable.getSource())
      .Case([&](train::FileSourceAttr source) {
        FailureOr<unsigned> file = weightFile(variable, source.getPath());
        if (failed(file))
          return failure();
        const uint64_t size = plan_.weight_files(int(*file)).size();
        const uint64_t end = uint64_t(source.getOffset()) + uint64_t(source.getLength());
        if (end > size)
          return LogicalResult(variable.emitError()
                               << "its weight file " << source.getPath() << " was changed while it was read: it has "
                               << size << " bytes, and " << end << " are needed; compile it again");
        message.mutable_range()->set_file(*file);
        message.mutable_range()->set_offset(source.getOffset());
        message.mutable_range()->set_length(source.getLength());
        message.mutable_range()->set_dtype(source.getDtype().str());
        return success();
      })
      .Case([&](train::FillSourceAttr source) {
        message.set_fill(source.getValue().getValueAsDouble());
        return success();
      })
      .Case([&](train::RandomSourceAttr source) {
        message.mutable_random()->set_distribution(source.getDistribution().str());
        message.mutable_random()->set_mean(source.getMean().getValueAsDouble());
        message.mutable_random()->set_deviation(source.getDeviation().getValueAsDouble());
        return success();
      })
      .Case([&](train::LiteralSourceAttr source) {
        message.set_literal(exportElements(source.getValue()));
        return success();
      })
      .Case([&](train::MissingSourceAttr source) {
        message.set_missing(source.getReason().str());
        return success();
      })
      .Default([&](Attribute source) { return variable.emitOpError() << "has an unknown source " << source; });
}

namespace {
struct Checksum {
  uint64_t size;
  uint32_t crc32c;
};
} // namespace

/// Of a whole file, read piece by piece: weights never count as memory of the compiler. Nothing, and errno, if it
/// cannot be read.
static std::optional<Checksum> checksumOf(const std::filesystem::path &path) {
  const int file = ds::openFile(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  std::vector<std::byte> piece(1 << 20);
  Checksum checksum{0, 0};
  ssize_t got = 1;
  while (got > 0 || (got < 0 && errno == EINTR)) {
    got = read(file, piece.data(), piece.size());
    checksum.crc32c = ds::crc32c(std::span(piece).first(size_t(std::max<ssize_t>(got, 0))), checksum.crc32c);
    checksum.size += uint64_t(std::max<ssize_t>(got, 0));
  }
  const int error = errno;
  close(file);
  errno = error;
  return got == 0 ? std::optional(checksum) : std::nullopt;
}

/// The index of a weight file; its size and checksum are read when it is first named.
FailureOr<unsigned> Exporter::weightFile(train::VariableOp variable, StringRef path) {
  auto [it, inserted] = files_.try_emplace(path, plan_.weight_files_size());
  if (!inserted)
    return it->second;
  namespace fs = std::filesystem;
  fs::path model;
  if (auto attribute = module_->getAttrOfType<StringAttr>("train.model_path"))
    model = attribute.str();
  if (!isFolder(model))
    model = model.parent_path();
  const fs::path file = model / path.str();
  const std::optional<Checksum> checksum = checksumOf(file);
  if (!checksum)
    return variable.emitError() << "its weight file " << file.string()
                                << " cannot be read: " << std::generic_category().message(errno);
  plan::proto::WeightFile &message = *plan_.add_weight_files();
  std::error_code error;
  const fs::path from = fs::absolute(context_.planFolder.empty() ? "." : context_.planFolder).lexically_normal();
  message.set_path(fs::absolute(file).lexically_normal().lexically_relative(from).generic_string());
  message.set_size(checksum->size);
  message.set_crc32c(checksum->crc32c);
  return it->second;
}
