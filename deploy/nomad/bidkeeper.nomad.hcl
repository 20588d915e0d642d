# Bidkeeper's managers and gateways on Nomad 1.8 or newer; docs/several-machines.md has the steps. Never run by us.
# The signer is on a machine of its own, outside of Nomad: whoever may submit jobs could read its keys. Servers and hooks are on
# machines of their own, too, since the addresses of hooks' receivers are files.
#   nomad job run -var image=registry.example/bidkeeper:0.1.0 deploy/nomad/bidkeeper.nomad.hcl

variable "image" {
  type        = string
  description = "docker build -f deploy/Dockerfile --build-arg DRIVER=postgresql --build-arg RELAY=true"
}

variable "slots" {
  type        = number
  default     = 4
  description = "as many as bidkeeper migrate --slots was told"
}

variable "secrets" {
  type        = string
  default     = "/etc/bidkeeper/secrets"
  description = "on each client, user 10001's, 0700: database-url, satflow.key, ca.pem, cert.pem, key.pem, 0600"
}

locals {
  # Bidkeeper's settings, the same for every task. The data directory is the allocation's, which its tasks share; gateways are
  # on the clients with the meta bidkeeper_gateway = "true".
  settings = <<-END
    BIDKEEPER_PUBLIC_NAME=bidkeeper.example
    BIDKEEPER_WHITELIST=
    BIDKEEPER_MARKET=satflow
    BIDKEEPER_SATFLOW_URL=https://api.satflow.com/v1
    BIDKEEPER_SATFLOW_API_KEY_FILE=/secrets/satflow.key
    BIDKEEPER_MEMPOOL_URL=https://mempool.space
    BIDKEEPER_ORD_URL=https://ord.example
    BIDKEEPER_DATABASE_URL_FILE=/secrets/database-url
    BIDKEEPER_DATA_DIR=/alloc/data
    BIDKEEPER_TLS_DIR=/secrets
    BIDKEEPER_GATEWAY_HOSTS=10.0.0.11:9701,10.0.0.12:9701
    BIDKEEPER_FACTS_HOSTS=10.0.0.11:9702,10.0.0.12:9702
    BIDKEEPER_SIGNER_HOST=10.0.0.9:9703
  END
}

job "bidkeeper" {
  datacenters = ["*"]
  type        = "service"

  # A client that does not answer: its programs are started elsewhere at once. The leases keep that safe.
  group "managers" {
    # A manager for each slot, whose number is the allocation's.
    count = var.slots

    spread {
      attribute = "${node.unique.id}"
    }

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

    # Takes requests to the gateway, facts and the signer, over TLS, from sockets in /alloc/data/relay.
    task "relay" {
      driver = "docker"
      user   = "10001"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        image           = var.image
        args            = ["relay"]
        network_mode    = "host"
        readonly_rootfs = true
        cap_drop        = ["all"]
        security_opt    = ["no-new-privileges"]
        volumes         = ["${var.secrets}:/secrets:ro"]
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
      }

      template {
        data        = local.settings
        destination = "local/settings.env"
        env         = true
      }

      resources {
        cpu    = 100
        memory = 128
      }
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
          target = "/tmp"
        }
      }

      template {
        data        = local.settings
        destination = "local/settings.env"
        env         = true
      }

      env {
        BIDKEEPER_MANAGER_LISTEN = "${attr.unique.network.ip-address}:9704"
      }

      resources {
        cpu        = 500
        memory     = 512
        memory_max = 2048
      }
    }
  }

  # Two gateways, of which one has the lease and talks to the marketplaces; the other one waits for it.
  group "gateways" {
    count = 2

    constraint {
      attribute = "${meta.bidkeeper_gateway}"
      value     = "true"
    }

    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    restart {
      attempts = 3
      interval = "1m"
      delay    = "2s"
      mode     = "delay"
    }

    task "gateway" {
      driver       = "docker"
      user         = "10001"
      kill_timeout = "10s"

      config {
        image           = var.image
        args            = ["gateway"]
        network_mode    = "host"
        init            = true # for the reason above
        readonly_rootfs = true
        cap_drop        = ["all"]
        security_opt    = ["no-new-privileges"]
        volumes         = ["${var.secrets}:/secrets:ro"]
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
      }

      template {
        data        = local.settings
        destination = "local/settings.env"
        env         = true
      }

      env {
        BIDKEEPER_GATEWAY_LISTEN = "${attr.unique.network.ip-address}:9701"
      }

      resources {
        cpu    = 500
        memory = 512
      }
    }

    task "facts" {
      driver = "docker"
      user   = "10001"

      config {
        image           = var.image
        args            = ["facts"]
        network_mode    = "host"
        readonly_rootfs = true
        cap_drop        = ["all"]
        security_opt    = ["no-new-privileges"]
        volumes         = ["${var.secrets}:/secrets:ro"]
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
      }

      template {
        data        = local.settings
        destination = "local/settings.env"
        env         = true
      }

      env {
        BIDKEEPER_FACTS_LISTEN = "${attr.unique.network.ip-address}:9702"
      }

      resources {
        cpu    = 200
        memory = 256
      }
    }
  }
}
