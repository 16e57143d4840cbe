// Any device with streams, through c10's device-generic interface: no CUDA header, no toolkit.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>

#include "thinwire/train/ddp/stream_order.hpp"

namespace thinwire::train {
namespace {

class DeviceStream final : public StreamOrder {
 public:
  explicit DeviceStream(const at::Device& device)
      : device_(device),
        backend_(device.type()),
        stream_(backend_.getNewStream(device)),
        gradients_(device.type()),
        exchange_(device.type()) {}

  void gradients_recorded() override {
    const std::lock_guard lock(mutex_);
    gradients_.record(backend_.getStream(device_));
  }

  void enter() override {
    backend_.setDevice(device_);
    backend_.exchangeStream(stream_);
    const std::lock_guard lock(mutex_);
    gradients_.block(stream_);
  }

  void exchange_recorded() override {
    const std::lock_guard lock(mutex_);
    exchange_.record(stream_);
  }

  void wait_for_exchange() override {
    const std::lock_guard lock(mutex_);
    exchange_.block(backend_.getStream(device_));
  }

  void share(const at::Tensor& tensor) override {
    backend_.recordDataPtrOnStream(tensor.storage().data_ptr(), stream_);
  }

 private:
  at::Device device_;
  c10::impl::VirtualGuardImpl backend_;
  c10::Stream stream_;
  std::mutex mutex_;  // guards the events: one thread records while the other blocks on them
  c10::Event gradients_;
  c10::Event exchange_;
};

}  // namespace

std::unique_ptr<StreamOrder> make_device_stream(const at::Device& device) {
  return std::make_unique<DeviceStream>(device);
}

}  // namespace thinwire::train
