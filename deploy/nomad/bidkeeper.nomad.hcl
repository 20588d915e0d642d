# Bidkeeper's managers, gateways and servers on Nomad 1.8 or newer; docs/several-machines.md has the steps. Never run by us.
# The signer is on a machine of its own, outside of Nomad: whoever may submit jobs could read its keys.
#   nomad job run -var image=registry.example/bidkeeper:0.1.0 deploy/nomad/bidkeeper.nomad.hcl

variable "image" {
  type        = string
  description = "made by docker build -f deploy/Dockerfile --build-arg EXTRAS=postgres"
}

variable "slots" {
  type        = number
  default     = 4
  description = "as many as bidkeeper migrate --slots was told"
}

variable "secrets" {
  type        = string
  default     = "/etc/bidkeeper/secrets"
  description = "on each client, user 10001's, mode 0700: database-url, satflow.key, ca.pem, cert.pem, key.pem, each 0600"
}

variable "settings" {
  type = map(string)
  default = {
    BIDKEEPER_PUBLIC_NAME          = "bidkeeper.example"
    BIDKEEPER_WHITELIST            = ""
    BIDKEEPER_MARKET               = "satflow"
    BIDKEEPER_SATFLOW_API_KEY_FILE = "/secrets/satflow.key"
    BIDKEEPER_MEMPOOL_URL          = "https://mempool.space"
    BIDKEEPER_ORD_URL              = "http://ord.example:8080"
    BIDKEEPER_DATABASE_URL_FILE    = "/secrets/database-url"
    BIDKEEPER_DATA_DIR             = "/data"
    BIDKEEPER_TLS_DIR              = "/secrets"
    # The clients of the meta bidkeeper_gateway: their addresses stay.
    BIDKEEPER_GATEWAY_HOSTS = "10.0.0.11:9701,10.0.0.12:9701"
    BIDKEEPER_FACTS_HOSTS   = "10.0.0.11:9702,10.0.0.12:9702"
    BIDKEEPER_SIGNER_HOST   = "10.0.0.9:9703"
  }
}

job "bidkeeper" {
  datacenters = ["*"]
  type        = "service"

  # A manager for each slot, whose number is the allocation's.
  group "managers" {
    count = var.slots

    spread {
      attribute = "${node.unique.id}"
    }

    # A client that does not answer: its managers are started elsewhere at once. The leases keep that safe.
    disconnect {
      lost_after = "5s"
      replace    = true
      reconcile  = "keep_replacement"
    }

    restart {
      attempts = 3
      interval = "1m"
      delay    = "2s"
      mode     = "fail"
    }

    reschedule {
      delay          = "5s"
      delay_function = "constant"
      unlimited      = true
    }

    network {
      mode = "host"
    }

    ephemeral_disk {
      size = 1000
    }

    task "manager" {
      driver       = "docker"
      user         = "10001"
      kill_timeout = "20s"

      config {
        image        = var.image
        args         = ["manager", "--slot", "${NOMAD_ALLOC_INDEX}"]
        network_mode = "host"
        # A manager ends itself by a signal when its lease runs out, which the kernel keeps from process 1 of a container.
        init            = true
        readonly_rootfs = true
        cap_drop        = ["all"]
        security_opt    = ["no-new-privileges"]
        volumes         = ["${var.secrets}:/secrets:ro"]
        mount {
          type   = "tmpfs"
          target = "/data"
          tmpfs_options {
            mode = 448 # 0700
            size = 1000000000
          }
        }
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
      }

      env = merge(var.settings, {
        BIDKEEPER_MANAGER_LISTEN = "${attr.unique.network.ip-address}:9704"
      })

      resources {
        cpu        = 500
        memory     = 512
        memory_max = 2048
      }
    }
  }
}
