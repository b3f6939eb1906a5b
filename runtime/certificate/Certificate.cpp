//===- Certificate.cpp - --certify ----------------------------------------===//
#include "runtime/certificate/Certificate.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Sha256.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/comm/Communicator.h"
#include "runtime/executor/Traffic.h"
#include "runtime/session/Resuming.h"
#include "runtime/session/StepReport.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t largest = size_t(64) << 20; // bytes; measurements add up

Json read(const std::string &path) {
  const std::optional<std::string> text = readWhole(path, largest);
  if (!text)
    throw Error("--certify " + path + " cannot be read: " + std::strerror(errno));
  Json certificate = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!certificate.is_object() || certificate.value("format", Json()) != "deepstatic certificate")
    throw Error("--certify " + path + " is no certificate; ds-opt verify PLAN --certificate FILE writes one");
  if (certificate.value("version", Json()) != 1)
    throw Error("--certify " + path + " is a certificate of a newer version; this ds-run reads version 1");
  if (!certificate.value("measured", Json()).is_array() || !certificate.value("plan", Json()).is_object() ||
      !certificate["plan"].value("sha256", Json()).is_string())
    throw Error("--certify " + path +
                " is a damaged certificate; ds-opt verify PLAN --certificate FILE writes it anew");
  return certificate;
}

std::string hashOf(Json certificate) {
  certificate.erase("measured");
  const std::string text = certificate.dump();
  return hexOf(sha256(std::as_bytes(std::span(text))));
}

Json trafficOf(const Traffic &traffic) {
  Json kinds = Json::object();
  for (size_t kind = 0; kind < traffic.collectives.size(); ++kind)
    kinds[name(CollectiveKind(kind))] = traffic.collectives[kind];
  kinds["send"] = traffic.sent;
  kinds["recv"] = traffic.received;
  return kinds;
}

/// A file, or the safetensors files of a folder.
Json weightsOf(const std::string &path) {
  namespace fs = std::filesystem;
  Json files = Json::object(); // digests by name
  if (!path.empty() && !fs::is_directory(path))
    files[fs::path(path).filename().string()] = hexOf(sha256OfFile(path));
  else if (!path.empty())
    for (const fs::directory_entry &entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".safetensors")
        files[entry.path().filename().string()] = hexOf(sha256OfFile(entry.path()));
  return files;
}

/// With what a run was made, which no claim is about.
Json runOf(const Training &training, const TrainingOptions &options) {
  const Beginning &beginning = training.beginning();
  Json data = Json::array();
  for (const Manifest::DataFile &file : dataFiles(options))
    data.push_back({{"file", file.name}, {"bytes", file.bytes}, {"digest", file.digest}});
  return {{"seed", beginning.manifest.seed},
          {"shuffle", options.shuffle},
          {"data", data},
          {"weights", weightsOf(options.weights)},
          {"resumed", beginning.checkpoint}};
}

} // namespace

Certificate::Certificate(std::string path, const std::string &planPath) : path_(std::move(path)) {
  const Json certificate = read(path_);
  hash_ = hashOf(certificate);
  planHash_ = certificate["plan"]["sha256"];
  if (const std::string has = hexOf(sha256OfFile(planPath)); has != planHash_)
    throw Error("--certify " + path_ + " is the certificate of another plan, or " + planPath +
                " was edited since: its SHA-256 begins with " + has.substr(0, 12) + ", the certificate's with " +
                planHash_.substr(0, 12) + "; ds-opt verify judges it anew");
}

void MeasuredRun::stepDone(const StepReport &report) noexcept {
  ++steps_;
  if (report.loss && losses_.size() < mostLosses)
    losses_.push_back(report.loss->asDouble());
  next_.stepDone(report);
}

void Certificate::requireSettings(const Training &training) const {
  if (const std::vector<Manifest::Change> &set = training.beginning().manifest.set; !set.empty())
    throw Error("--certify " + path_ + " is of the plan as it was compiled, and " + set.front().key +
                " of this run is another one by --set; compile with --set, and let ds-opt verify certify that plan");
}

void Certificate::append(const MeasuredRun &run, const Training &training, const TrainingOptions &options) const {
  const SummaryReport summary = training.summary();
  Json certificate = read(path_);
  certificate["measured"].push_back({{"ds_run", DS_VERSION},
                                     {"run", runOf(training, options)},
                                     {"steps", run.steps()},
                                     {"losses", run.losses()},
                                     {"rank", summary.rank},
                                     {"device_bytes", summary.deviceBytes},
                                     {"device_touched_bytes", summary.deviceTouchedBytes},
                                     {"host_bytes", summary.hostBytes},
                                     {"wire_bytes_per_step", trafficOf(summary.trafficPerStep)}});
  writeFileAtomically(path_, certificate.dump(2) + "\n");
}

} // namespace ds::runtime
