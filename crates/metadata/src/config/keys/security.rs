use crate::config::definition::config_keys;

config_keys! {
    /// Logins, encryption and authorisation: accepted, shown, without effect until they are built.
    SECURITY_KEYS;
    "authorizer.class.name" String "" any Static Low NotYet
        "Who decides what a caller may do.";
    "super.users" String "" any Static Low NotYet
        "Principals that may do everything.";
    "allow.everyone.if.no.acl.found" Boolean "false" any Static Low NotYet
        "Whether a resource without rules is open to all.";
    "principal.builder.class" Class
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder" any
        PerBroker Medium NotYet
        "Java class that makes a principal of a login.";
    "security.providers" String none any Static Low NotYet
        "Java security providers.";
    "sasl.enabled.mechanisms" List "GSSAPI" any PerBroker Medium NotYet
        "SASL mechanisms that are offered.";
    "sasl.mechanism.inter.broker.protocol" String "GSSAPI" any PerBroker Medium NotYet
        "SASL mechanism between brokers.";
    "sasl.mechanism.controller.protocol" String "GSSAPI" any Static High NotYet
        "SASL mechanism towards controllers.";
    "sasl.jaas.config" Password none any PerBroker Medium NotYet
        "Login settings of a listener.";
    "sasl.server.callback.handler.class" Class none any Static Medium NotYet
        "Java class that checks logins.";
    "sasl.client.callback.handler.class" Class none any Static Medium NotYet
        "Java class that answers login questions.";
    "sasl.login.class" Class none any Static Medium NotYet
        "Java class for logging in.";
    "sasl.login.callback.handler.class" Class none any Static Medium NotYet
        "Java class that is asked while logging in.";
    "sasl.kerberos.service.name" String none any PerBroker Medium NotYet
        "Kerberos name of the service.";
    "sasl.kerberos.kinit.cmd" String "/usr/bin/kinit" any PerBroker Medium NotYet
        "Path of kinit.";
    "sasl.kerberos.principal.to.local.rules" List "DEFAULT" any PerBroker Medium NotYet
        "Rules that make short names of Kerberos names.";
    "sasl.server.max.receive.size" Int "524288" [1, 2147483647] Static Medium NotYet
        "Largest message of a login.";
    "delegation.token.secret.key" Password none any Static Medium NotYet
        "Secret that delegation tokens are made with.";
    "delegation.token.max.lifetime.ms" Long "604800000" [1] Static Medium NotYet
        "How long a delegation token can live.";
    "delegation.token.expiry.time.ms" Long "86400000" [1] Static Medium NotYet
        "How long a delegation token lives without being renewed.";
    "delegation.token.expiry.check.interval.ms" Long "3600000" [1] Static Low NotYet
        "How often dead delegation tokens are looked for.";
    "password.encoder.secret" Password none any Static Medium NotYet
        "Kept for old files.";
    "ssl.protocol" String "TLSv1.3" any PerBroker Medium NotYet
        "TLS version.";
    "ssl.provider" String none any PerBroker Medium NotYet
        "Java TLS provider.";
    "ssl.enabled.protocols" List "TLSv1.2,TLSv1.3" any PerBroker Medium NotYet
        "TLS versions that are offered.";
    "ssl.cipher.suites" List "" any PerBroker Medium NotYet
        "TLS cipher suites that are offered.";
    "ssl.keystore.type" String "JKS" any PerBroker Medium NotYet
        "Format of the key store.";
    "ssl.keystore.location" String none any PerBroker Medium NotYet
        "File of the key store.";
    "ssl.keystore.password" Password none any PerBroker Medium NotYet
        "Password of the key store.";
    "ssl.keystore.key" Password none any PerBroker Medium NotYet
        "Private key, as text.";
    "ssl.keystore.certificate.chain" Password none any PerBroker Medium NotYet
        "Certificates, as text.";
    "ssl.key.password" Password none any PerBroker Medium NotYet
        "Password of the private key.";
    "ssl.truststore.type" String "JKS" any PerBroker Medium NotYet
        "Format of the trust store.";
    "ssl.truststore.location" String none any PerBroker Medium NotYet
        "File of the trust store.";
    "ssl.truststore.password" Password none any PerBroker Medium NotYet
        "Password of the trust store.";
    "ssl.truststore.certificates" Password none any PerBroker Medium NotYet
        "Trusted certificates, as text.";
    "ssl.keymanager.algorithm" String "SunX509" any PerBroker Medium NotYet
        "Java key manager.";
    "ssl.trustmanager.algorithm" String "PKIX" any PerBroker Medium NotYet
        "Java trust manager.";
    "ssl.endpoint.identification.algorithm" String "https" any PerBroker Low NotYet
        "How a host name is checked.";
    "ssl.secure.random.implementation" String none any PerBroker Low NotYet
        "Java source of randomness.";
    "ssl.client.auth" String "none" { "required" "requested" "none" } PerBroker Medium NotYet
        "Whether clients show a certificate.";
    "ssl.principal.mapping.rules" String "DEFAULT" any Static Low NotYet
        "Rules that make principals of certificate names.";
    "ssl.engine.factory.class" Class none any PerBroker Low NotYet
        "Java class that makes TLS engines.";
}
