# SPDX-License-Identifier: GPL-2.0-or-later
# The devices that QEMU is built with, and what these select. QEMU's own list has three
# times as many, which take a fifth of its build.
CONFIG_Q35=y
CONFIG_VTD=y
CONFIG_HPET=y
CONFIG_PCIE_PORT=y
CONFIG_PCI_BRIDGE=y
CONFIG_QHCA=y
CONFIG_QHCA_OBSERVE=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_NET=y
CONFIG_VIRTIO_SERIAL=y
CONFIG_VIRTIO_RNG=y
CONFIG_VIRTIO_9P=y
# The selftests' guests are reached by ssh over it.
CONFIG_E1000E_PCI_EXPRESS=y
